package rulefn_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/tests/support/appendertest"
	"github.com/promlake/promlake/tests/support/memstore"
)

var (
	timelines     = flag.Uint64("timelines", 5, "random timelines with random rules in which the function is killed at every request")
	timelinesFrom = flag.Uint64("timelines-from", 0, "seed of the first one")
)

const timelineMinutes = 6

// TestTimelinesKilledAtEveryRequest: in each random timeline and each of its minutes, the first
// function dies at its first request, the next one at its second, and so on, until one survives.
// All samples and events of alerts are those of upstream's groups, which were never killed.
func TestTimelinesKilledAtEveryRequest(t *testing.T) {
	kills := 0
	for seed := *timelinesFrom; seed < *timelinesFrom+*timelines; seed++ {
		kills += timelineKilled(t, seed)
		if t.Failed() {
			return
		}
	}
	t.Logf("timelines %d to %d, %d kills", *timelinesFrom, *timelinesFrom+*timelines-1, kills)
	require.Greater(t, kills, int(*timelines)*2*timelineMinutes)
}

// timelineKilled runs one timeline and returns the number of kills.
func timelineKilled(t *testing.T, seed uint64) (kills int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	base, groups, direct := timelineData(r), timelineGroups(r), r.IntN(2) == 0
	wantSamples, wantSent := uninterrupted(t, base, groups, timelineMinutes, resend(direct))

	w := newWorld(t, base)
	w.direct(direct)
	w.rules(groups...)
	f, at, late := w.function(), 1, 0
	for minute := range timelineMinutes + 1 {
		for {
			w.calls, w.kill, w.when = 0, at, []memstore.When{memstore.Before, memstore.After}[r.IntN(2)]
			if w.tick(f, origin.Add(time.Duration(minute)*time.Minute)) {
				at, late = 1, 0
				if r.IntN(2) == 0 {
					f = w.function()
				}
				break
			}
			kills++
			f, at = w.function(), at+1
			// What is not done may also wait for the next minutes, but at most for the time of
			// catching up, and not before a group was ever evaluated.
			if minute > 0 && late < 3 && r.IntN(20) == 0 {
				late++
				break
			}
		}
	}
	w.kill = 0
	for range 2 {
		require.True(t, w.tick(f, origin.Add(timelineMinutes*time.Minute)))
	}
	samples, sent := w.delivered()
	require.Empty(t, difference(wantSamples, samples), "timeline %d: samples", seed)
	requireEvents(t, wantSent, sent, fmt.Sprintf("timeline %d", seed))
	return kills
}

// difference returns what only one of two maps has, or with another value.
func difference(want, got map[string]string) (out []string) {
	for k, v := range want {
		if other, ok := got[k]; !ok || other != v {
			out = append(out, fmt.Sprintf("want %s = %q, got %q", k, v, other))
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("got %s = %q too much", k, v))
		}
	}
	slices.Sort(out)
	return out
}

// timelineData returns series that come and go, and one whose label changes.
func timelineData(r *rand.Rand) *ruleeval.Memory {
	const length = (timelineMinutes + 2) * time.Minute
	m := randomData(r, length)
	version := 0
	series := func() labels.Labels {
		return labels.FromStrings("__name__", "v", "x", "4", "version", fmt.Sprint(version))
	}
	tx := &appender.Transaction{}
	for t := int64(-600_000); t < length.Milliseconds(); t += 15_000 {
		now := origin.UnixMilli() + t
		if r.IntN(6) == 0 {
			tx.Samples = append(tx.Samples, appendertest.Sample(series(), now, math.Float64frombits(value.StaleNaN)))
			version = (version + 1 + r.IntN(2)) % 3
		}
		tx.Samples = append(tx.Samples, appendertest.Sample(series(), now, float64(r.IntN(10))))
	}
	if err := m.Add(tx); err != nil {
		panic(err)
	}
	return m
}

// timelineGroups returns random groups, whose rules read the data, each other's results and their
// own.
func timelineGroups(r *rand.Rand) (all []rulestore.Group) {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	duration := func(all ...time.Duration) model.Duration { return model.Duration(all[r.IntN(len(all))]) }
	groups := 1 + r.IntN(2)
	for g := range groups {
		one := rulestore.Group{Name: fmt.Sprint("g", g), Interval: duration(15*time.Second, 30*time.Second, time.Minute)}
		// A late evaluation sees what a group with an offset has written meanwhile for the time
		// before, so no other group reads its results.
		if groups == 1 && r.IntN(4) == 0 {
			offset := model.Duration(20 * time.Second)
			one.QueryOffset = &offset
		}
		if r.IntN(5) == 0 {
			one.Limit = 2
		}
		if r.IntN(4) == 0 {
			one.Labels = map[string]string{"team": "a"}
		}
		for i := range 2 + r.IntN(3) {
			name := fmt.Sprintf("%d_%d", g, i)
			rule := rulestore.Rule{Labels: map[string]string{}, Expr: pick(
				"v", "v > 3", "v == 7 or v < 2", "sum by (x) (v) > 4", `absent(v{x="1"})`, "v unless on (x) v offset 30s", "sum_over_time(v[1m]) > 15",
				"r0_0 > 3", "max(r0_0)", `count by (alertstate) (ALERTS)`, "v and on (x) r1_0", "topk(1, v)", "v + on (x) group_right v", "r"+name+" + 1 or vector(1)",
			)}
			if r.IntN(3) == 0 {
				rule.Record = "r" + name
				if r.IntN(3) == 0 {
					rule.Labels["by"] = one.Name
				}
				one.Rules = append(one.Rules, rule)
				continue
			}
			rule.Alert = "A" + name
			rule.For = duration(0, 0, time.Duration(one.Interval), 90*time.Second)
			rule.KeepFiringFor = duration(0, 0, time.Duration(one.Interval), 70*time.Second)
			rule.Labels["severity"] = pick("page", "{{ if gt $value 5.0 }}high{{ else }}low{{ end }}", "{{ $labels.version }}", "{{ $value }}")
			rule.Annotations = map[string]string{"value": pick("", "{{ $value }}", `{{ with query "count(v)" }}{{ . | first | value }}{{ end }}`, "{{ wrong")}
			one.Rules = append(one.Rules, rule)
		}
		all = append(all, one)
	}
	return all
}
