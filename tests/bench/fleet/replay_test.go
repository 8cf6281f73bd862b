package fleet_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
)

var replayStart = time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC)

func named(name string, values ...float64) capture.Series {
	return capture.Series{Labels: labels.FromStrings(model.MetricNameLabel, name), Values: values}
}

func replayOf(t *testing.T, c *capture.Capture, hosts, rounds int, vary bool) *fleet.Replay {
	t.Helper()
	r, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: hosts, Rounds: rounds, Start: replayStart, Interval: 10 * time.Second, Vary: vary})
	require.NoError(t, err)
	return r
}

func TestReplayContinuesAfterTheCapture(t *testing.T) {
	c := &capture.Capture{Times: []int64{1e12, 1e12 + 2000, 1e12 + 4000, 1e12 + 6000}, Series: []capture.Series{
		named("gauge", 1.5, -2, 7, 1.5),
		named("decimals_total", 0.1, 0.2, 0.2, 0.7),
		named("scaled_total", scaled(8899), scaled(8900), scaled(8903), scaled(8911)),
		named("pages_total", 4096, 4096, 12288, 12288),
		named("noise_total", 1.0000000000000002, 1.1, 2.2, 3.3000000000000003),
		named("clock", 1e9+0.25, 1e9+2.25, 1e9+4.25, 1e9+6.25),
		named("constant", 3, 3, 3, 3),
	}}
	r := replayOf(t, c, 1, 10, false)
	require.Equal(t, 1, r.Hosts())
	require.Equal(t, len(c.Series), r.PerHost())
	series := func(i, n int) (v []float64) {
		for round := range n {
			v = append(v, r.Value(0, i, round))
		}
		return v
	}
	require.Equal(t, []float64{1.5, -2, 7, 1.5, 1.5, -2, 7, 1.5, 1.5, -2}, series(0, 10))
	require.Equal(t, []float64{0.1, 0.2, 0.2, 0.7, 0.7, 0.8, 0.8, 1.3, 1.3, 1.4}, series(1, 10), "no noise of adding")
	require.Equal(t, []float64{scaled(8911), scaled(8912), scaled(8915)}, series(2, 7)[4:], "the exporter's own noise")
	require.Equal(t, []float64{12288, 12288, 20480, 20480, 20480}, series(3, 9)[4:])
	// 1.0000000000000002 + (3.3000000000000003 − 1.0000000000000002), and so on, in decimals, then
	// rounded.
	require.Equal(t, []float64{3.3000000000000003, 3.4000000000000001, 4.5000000000000001}, series(4, 7)[4:])
	for round := range 10 {
		require.InDelta(t, float64(r.Time(0, round))/1000+0.25, r.Value(0, 5, round), 0.005001, "in its two decimals")
	}
	require.Equal(t, []float64{3, 3, 3, 3, 3}, series(6, 5))
}

// TestReplayOfARealCapture checks properties on which measurements rely: counters never decrease,
// values have no more digits than the captured ones, and hosts differ only in labels and phase
// unless Vary is set.
func TestReplayOfARealCapture(t *testing.T) {
	c, err := capture.Open("")
	require.NoError(t, err)
	const hosts, rounds = 4, 70
	for _, vary := range []bool{false, true} {
		r, again := replayOf(t, c, hosts, rounds, vary), replayOf(t, c, hosts, rounds, vary)
		same := 0
		for i := range r.PerHost() {
			name := r.Labels(0, i).Get(model.MetricNameLabel)
			most := digits(c.Series[i].Values...)
			for host := range hosts {
				last := math.Inf(-1)
				for round := range rounds {
					v := r.Value(host, i, round)
					switch {
					case math.Float64bits(v) != math.Float64bits(again.Value(host, i, round)):
						t.Fatalf("%s differs from replay to replay", name)
					case strings.HasSuffix(name, "_total") && v < last:
						t.Fatalf("%s falls from %v to %v", name, last, v)
					case most <= 6 && digits(v) > most:
						t.Fatalf("%s: %v has more than %d digits", name, v, most)
					}
					last = v
				}
			}
			// Host 2 begins in the middle of the capture, where host 0 is after half a pass.
			if math.Float64bits(r.Value(2, i, 0)) == math.Float64bits(r.Value(0, i, len(c.Times)/2)) {
				same++
			}
		}
		if vary {
			require.Less(t, same, r.PerHost()*3/4)
		} else {
			require.GreaterOrEqual(t, same, r.PerHost()-5, "all but clocks")
		}
	}
}

// digits returns the largest number of decimal places of the values.
func digits(vs ...float64) (most int) {
	for _, v := range vs {
		_, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
		most = max(most, len(fraction))
	}
	return most
}

func TestReplayTimes(t *testing.T) {
	c := &capture.Capture{Times: []int64{1e12, 1e12 + 1}, Series: []capture.Series{named("up", 1, 1)}}
	r := replayOf(t, c, 3, 10, false)
	phases := map[int64]bool{}
	for host := range 3 {
		first := r.Time(host, 0) - replayStart.UnixMilli()
		require.True(t, 0 <= first && first < 10_000)
		require.Equal(t, int64(90_000), r.Time(host, 9)-r.Time(host, 0))
		phases[first] = true
	}
	require.Len(t, phases, 3)
	_, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: 0})
	require.ErrorIs(t, err, fleet.ErrHosts)
}

func TestReplayRejectsValuesBeyondDoubles(t *testing.T) {
	c := &capture.Capture{Times: []int64{1e12, 1e12 + 1}, Series: []capture.Series{named("big_total", 1, 1<<52+1)}}
	_, err := fleet.NewReplay(c, fleet.ReplaySettings{Hosts: 1, Rounds: 100, Start: replayStart, Interval: time.Second})
	require.ErrorContains(t, err, "2^53")
}

// scaled returns n thousandths as an exporter computes them, with rounding noise: a constant would
// be exact.
func scaled(n float64) float64 { return n * math.Pow10(-3) }
