package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/wire"
)

func TestSettingsDefaults(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := Settings{URL: "http://x", Rate: 1000, Interval: 10 * time.Second, Duration: 100 * time.Second}.complete(5000, now)
	require.NoError(t, err)
	require.Equal(t, 2000, s.Batch)
	require.Equal(t, 30*time.Second, s.Timeout)
	// 20 rounds of 10 s, one more to be safe, on a multiple of the interval.
	require.Equal(t, time.Date(2026, 1, 2, 3, 0, 30, 0, time.UTC), s.Start)

	s, err = Settings{URL: "http://x", Rounds: 2}.complete(5000, now)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 1, 2, 3, 3, 15, 0, time.UTC), s.Start)
}

func TestSettingsAreChecked(t *testing.T) {
	good := Settings{URL: "http://x"}
	for want, spoil := range map[string]func(*Settings){
		`URL "ftp://x": want http or https`:              func(s *Settings) { s.URL = "ftp://x" },
		`URL "": want http or https`:                     func(s *Settings) { s.URL = "" },
		"pid -1: want a process or 0":                    func(s *Settings) { s.PID = -1 },
		"unknown protocol 11":                            func(s *Settings) { s.Protocol = 11 },
		"batch -1: want 1 to 1000000 samples":            func(s *Settings) { s.Batch = -1 },
		"concurrency 1025: want 1 to 1024":               func(s *Settings) { s.Concurrency = 1025 },
		"rate -1: want samples/s or 0":                   func(s *Settings) { s.Rate = -1 },
		"duration -1s: want more than 0":                 func(s *Settings) { s.Duration = -time.Second },
		"rounds -1: want 0 or more":                      func(s *Settings) { s.Rounds = -1 },
		"interval 1.5ms: want whole milliseconds":        func(s *Settings) { s.Interval = 1500 * time.Microsecond },
		"settle -1s: want 0 or more":                     func(s *Settings) { s.Settle = -time.Second },
		"churn 1.5: want a share from 0 to 1":            func(s *Settings) { s.Churn = 1.5 },
		"timeout -1s: want more than 0":                  func(s *Settings) { s.Timeout = -time.Second },
		`first path segment in URL cannot contain colon`: func(s *Settings) { s.URL = "127.0.0.1:9" },
	} {
		s := good
		spoil(&s)
		_, err := s.complete(10, time.Now())
		require.ErrorIs(t, err, ErrSettings, want)
		require.ErrorContains(t, err, want)
	}
}

func TestPacer(t *testing.T) {
	p := &pacer{rate: 1000}
	require.Equal(t, time.Duration(0), p.due(500))
	require.Equal(t, 500*time.Millisecond, p.due(2000))
	require.Equal(t, 2500*time.Millisecond, p.due(1))
	free := &pacer{}
	free.due(1 << 40)
	require.Equal(t, time.Duration(0), free.due(1))
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tc := range []struct {
		of   []time.Duration
		q    float64
		want time.Duration
	}{
		{nil, 0.5, 0},
		{hundred[:1], 0.99, 1},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred[:3], 0.5, 2},
		{hundred, 0, 1},
	} {
		require.Equal(t, tc.want, percentile(tc.of, tc.q), "%v of %d", tc.q, len(tc.of))
	}
}

// TestChurn replaces one batch of twelve after 20 minutes with one sender in four, which is 2% of
// all, and goes round when all were replaced.
func TestChurn(t *testing.T) {
	first, last := churn{share: 0.01}, churn{share: 0.01, offset: 0.76}
	require.Equal(t, 0, first.due(12, time.Hour))
	require.Equal(t, 0, last.due(12, 19*time.Minute))
	require.Equal(t, 1, last.due(12, 20*time.Minute))
	last.replaced = 1
	require.Equal(t, 0, last.due(12, 29*time.Minute))

	c, err := capture.Open("")
	require.NoError(t, err)
	f, err := fleet.New(c, 2)
	require.NoError(t, err)
	plan, err := planBatches(f, wire.V1, f.PerHost(), 1)
	require.NoError(t, err)
	all := churn{share: 1}
	require.NoError(t, all.renew(f, wire.V1, plan[0], 20*time.Minute))
	require.Equal(t, []int{4 * f.PerHost(), 5 * f.PerHost()}, []int{plan[0][0].first, plan[0][1].first})
	require.Equal(t, "host_5:9100", f.Labels(plan[0][1].first).Get("instance"))
}
