package lifetime

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// restart: after a restart the segments from before are merged soon, no sample is lost, none is
// there twice, and rules have the results of a process that was never restarted.
func restart(t *testing.T, x *target) {
	w, twin := newWorld(t, x, false), newWorld(t, x, false)
	for _, each := range []*world{w, twin} {
		each.set.Compact.SettleDelay, each.set.Compaction.Interval = time.Second, 5*time.Second
		each.start()
	}
	begin := time.Now()
	x.run(2 * time.Minute)
	x.alarm.Store(true)
	x.run(2*time.Minute + 20*time.Second)

	w.quiet(x)
	restarted := time.Now()
	waiting := w.segments(restarted)
	require.Greater(t, waiting, 60)
	w.stop()
	w.start()
	x.run(20 * time.Second)
	require.Less(t, w.segments(restarted), 10, "they are merged")
	require.Equal(t, waiting, twin.segments(restarted), "a process that keeps their samples lets them wait")
	x.run(10 * time.Minute)
	at := time.Now().Add(-interval)
	got, gotAlerts := divided(w.once(at, at.Sub(begin)))
	want, wantAlerts := divided(twin.once(at, at.Sub(begin)))
	for _, all := range []samples{want, got} {
		maps.DeleteFunc(all, func(name string, _ map[model.Time]model.SampleValue) bool {
			return strings.HasPrefix(name, "scrape_series_added{")
		})
	}
	require.Equal(t, want, got)
	require.Equal(t, afterRestart(wantAlerts, restarted), gotAlerts)
	require.Zero(t, w.metric("prometheus_rule_evaluation_failures_total"))
	require.Zero(t, w.metric("prometheus_rule_group_iterations_missed_total"))
	w.stop()
	twin.stop()
}

// samples are values by series and time.
type samples map[string]map[model.Time]model.SampleValue

// divided returns the samples that are not of alerts, and those that are.
func divided(all model.Matrix) (out, alerts samples) {
	out, alerts = samples{}, samples{}
	for _, s := range all {
		to := out
		if strings.HasPrefix(string(s.Metric[model.MetricNameLabel]), "ALERTS") {
			to = alerts
		}
		values := map[model.Time]model.SampleValue{}
		for _, p := range s.Values {
			values[p.Timestamp] = p.Value
		}
		to[s.Metric.String()] = values
	}
	return out, alerts
}

// afterRestart returns alerts as Prometheus' rule manager has them after a restart. Two evaluations
// write none, because it looks for the former ones after the second. A pending alert, which is Late
// alone, goes on with the time that it had, so it is two intervals late. An alert without a time
// (Often) is a new one.
func afterRestart(alerts samples, restarted time.Time) samples {
	first := model.TimeFromUnixNano(restarted.UnixNano())
	last := first.Add(2 * interval)
	out := samples{}
	for name, values := range alerts {
		kept := maps.Clone(values)
		maps.DeleteFunc(kept, func(at model.Time, _ model.SampleValue) bool { return at > first && at <= last })
		for at := range kept {
			switch isTime := strings.HasPrefix(name, "ALERTS_FOR_STATE"); {
			case at < last || !isTime:
			case strings.Contains(name, `"Late"`):
				kept[at] += model.SampleValue((2 * interval).Seconds())
			case strings.Contains(name, `"Often"`):
				for next := range values {
					if next > first && next <= first.Add(interval) {
						kept[at] = model.SampleValue(next.Unix())
					}
				}
			}
		}
		out[name] = kept
	}
	for name, firing := range out {
		if before, after, ok := strings.Cut(name, `"Late", alertstate="firing"`); ok {
			for _, at := range slices.Sorted(maps.Keys(firing))[:2] {
				out[before+`"Late", alertstate="pending"`+after][at] = 1
				delete(firing, at)
			}
		}
	}
	return out
}
