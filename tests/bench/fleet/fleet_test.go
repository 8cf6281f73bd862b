package fleet_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

func golden(t *testing.T, hosts int) (*fleet.Fleet, *capture.Capture) {
	t.Helper()
	c, err := capture.Open("")
	require.NoError(t, err)
	f, err := fleet.New(c, hosts)
	require.NoError(t, err)
	return f, c
}

// scrape returns all values of a round, 15 s after the one before.
func scrape(f *fleet.Fleet, round int) []float64 {
	v := make([]float64, f.Len())
	f.Values(v, 0, round, scrapeTime(round))
	return v
}

func scrapeTime(round int) int64 { return 1_800_000_000_000 + int64(round)*15_000 }

func TestLabels(t *testing.T) {
	c := &capture.Capture{Times: []int64{0}, Series: []capture.Series{
		{Labels: labels.FromStrings("__name__", "up", "job", "captured"), Values: []float64{1}},
		{Labels: labels.FromStrings("__name__", "x", "zone", "z"), Values: []float64{1}},
	}}
	f, err := fleet.New(c, 7)
	require.NoError(t, err)
	require.Equal(t, 14, f.Len())
	require.Equal(t, 2, f.PerHost())
	require.Equal(t, labels.FromStrings("__name__", "up", "env", "prod", "host_number", "0", "instance", "host_0:9100", "job", "node_exporter",
		"role", "web"), f.Labels(0))
	require.Equal(t, labels.FromStrings("__name__", "x", "env", "prod", "host_number", "6", "instance", "host_6:9100", "job", "node_exporter",
		"role", "database", "zone", "z"), f.Labels(13))
}

func TestSeriesAreDistinct(t *testing.T) {
	f, _ := golden(t, 60)
	seen, roles, envs := map[string]bool{}, map[string]int{}, map[string]int{}
	for i := range f.Len() {
		l := f.Labels(i)
		require.False(t, seen[l.String()], "%s twice", l)
		seen[l.String()] = true
		if i%f.PerHost() == 0 {
			roles[l.Get("role")]++
			envs[l.Get("env")]++
		}
	}
	require.Equal(t, map[string]int{"web": 12, "database": 12, "cache": 12, "queue": 12, "batch": 12}, roles)
	require.Len(t, envs, 3)
}

func TestValuesAreDeterministic(t *testing.T) {
	a, _ := golden(t, 5)
	b, _ := golden(t, 9) // more hosts change nothing for the first
	for _, round := range []int{0, 19, 20, 1000} {
		require.Equal(t, scrape(a, round), scrape(b, round)[:a.Len()])
	}
	part := make([]float64, 700)
	a.Values(part, 400, 3, scrapeTime(3))
	require.Equal(t, scrape(a, 3)[400:1100], part)
}

func TestCountersNeverFall(t *testing.T) {
	f, _ := golden(t, 10)
	last, counters := scrape(f, 0), 0
	for round := 1; round < 100; round++ {
		now := scrape(f, round)
		for i := range now {
			if f.Counter(i) {
				require.GreaterOrEqual(t, now[i], last[i], "%s in round %d", f.Labels(i), round)
			}
		}
		last = now
	}
	for i := range f.PerHost() {
		if f.Counter(i) {
			counters++
		}
	}
	require.Greater(t, counters, 50, "golden counters that change")
}

func TestHostsDiffer(t *testing.T) {
	f, c := golden(t, 2)
	v := scrape(f, 0)
	for s, series := range c.Series {
		a, b := v[s], v[f.PerHost()+s]
		if isConstant(series.Values) {
			require.Equal(t, series.Values[0], a, "%s", series.Labels)
			require.Equal(t, a, b, "%s", series.Labels)
		} else if math.Abs(series.Values[0]) > 1e6 {
			require.NotEqual(t, a, b, "%s", series.Labels)
		}
	}
}

func TestValuesKeepTheirGrid(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float64
		onGrid func(v float64) bool
	}{
		{"pages", []float64{8192, 12288, 4096}, func(v float64) bool { return math.Mod(v, 4096) == 0 }},
		{"integers", []float64{3, 2, 7}, func(v float64) bool { return v == math.Trunc(v) }},
		{"hundredths", []float64{0.55, 1.29, 1.43}, func(v float64) bool { return math.Round(v*100)/100 == v }},
		{"scaled ticks", []float64{8.899000000000001, 0.5750000000000001, 8.864}, func(v float64) bool { tick := 0.001; return math.Round(v/tick)*tick == v }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &capture.Capture{Times: []int64{1.795e12, 1.795e12 + 1, 1.795e12 + 2}, Series: []capture.Series{{Labels: labels.FromStrings("__name__", "g"), Values: tc.values}}}
			f, err := fleet.New(c, 100)
			require.NoError(t, err)
			for _, v := range scrape(f, 0) {
				require.True(t, tc.onGrid(v), "%v", v)
			}
		})
	}
}

func TestClockFollowsTheScrape(t *testing.T) {
	f, c := golden(t, 3)
	for s, series := range c.Series {
		if series.Labels.Get("__name__") != "node_time_seconds" {
			continue
		}
		for round := range 50 {
			v := scrape(f, round)
			for host := range 3 {
				require.InDelta(t, float64(scrapeTime(round))/1000, v[host*f.PerHost()+s], 0.1)
			}
		}
		return
	}
	t.Fatal("node_time_seconds is not in the golden capture")
}

func TestNumberOfHosts(t *testing.T) {
	for _, n := range []int{-1, 0, fleet.MaxHosts + 1} {
		_, err := fleet.New(&capture.Capture{}, n)
		require.ErrorIs(t, err, fleet.ErrHosts)
		require.ErrorContains(t, err, fmt.Sprint(n))
	}
}

func isConstant(v []float64) bool {
	for _, x := range v {
		if x != v[0] {
			return false
		}
	}
	return true
}
