package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		"protocol 7: want 1 or 2":                        func(s *Settings) { s.Protocol = 7 },
		"batch -1: want 1 to 1000000 samples":            func(s *Settings) { s.Batch = -1 },
		"concurrency 1025: want 1 to 1024":               func(s *Settings) { s.Concurrency = 1025 },
		"rate -1: want samples/s or 0":                   func(s *Settings) { s.Rate = -1 },
		"duration -1s: want more than 0":                 func(s *Settings) { s.Duration = -time.Second },
		"rounds -1: want 0 or more":                      func(s *Settings) { s.Rounds = -1 },
		"interval 1.5ms: want whole milliseconds":        func(s *Settings) { s.Interval = 1500 * time.Microsecond },
		"settle -1s: want 0 or more":                     func(s *Settings) { s.Settle = -time.Second },
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
