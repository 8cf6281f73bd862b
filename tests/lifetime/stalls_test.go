package lifetime

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/memstore"
)

// stalls: the store takes a flush late, or fails some. Samples are on disk meanwhile, and stored
// once more. Each is there once, no evaluation is left out, and the head goes on, but for segments
// that the store has although it said otherwise.
func stalls(t *testing.T, x *target) {
	w, twin := newWorld(t, x, true), newWorld(t, x, true)
	w.start()
	twin.start()
	begin := time.Now()
	x.run(6 * time.Minute)

	away := errors.New("away")
	var gate chan struct{}
	var outages [][2]model.Time
	for _, stall := range []struct {
		took  time.Duration
		fault func() memstore.Fault
		keeps bool // the head answers afterwards
	}{
		{9 * time.Second, func() memstore.Fault { return memstore.Fault{Until: gate} }, true},
		{28 * time.Second, func() memstore.Fault { return memstore.Fault{Until: gate} }, true},
		{3 * time.Second, func() memstore.Fault { return memstore.Fault{Err: away} }, true},
		{25 * time.Second, func() memstore.Fault { return memstore.Fault{Err: away} }, true},
		{20 * time.Second, func() memstore.Fault { return memstore.Fault{Err: away, When: memstore.After} }, false},
	} {
		gate = make(chan struct{})
		spilled, from := w.metric("promlake_queue_spilled_samples_total"), time.Now()
		w.inject(func(c memstore.Call) memstore.Fault {
			if c.Op != memstore.Put || !strings.Contains(c.Key, "/segments/") {
				return memstore.Fault{}
			}
			return stall.fault()
		})
		for end := from.Add(stall.took); time.Now().Before(end) || w.metric("promlake_queue_spilled_samples_total") == spilled; {
			x.run(time.Second)
		}
		w.inject(nil)
		close(gate)
		x.run(40 * time.Second)
		require.Zero(t, w.metric("promlake_queue_disk_bytes"))
		// An evaluation takes some seconds from its time on.
		outages = append(outages, [2]model.Time{model.TimeFromUnixNano(from.Add(-interval).UnixNano()), model.TimeFromUnixNano(time.Now().UnixNano())})
		before := w.notFromHead()
		x.run(time.Minute)
		if stall.keeps {
			// A query that runs at one end of the minute has been counted by one of the metrics.
			require.InDelta(t, before, w.notFromHead(), groups)
		}
		x.run(20 * time.Second)
	}
	at := time.Now().Add(-interval)
	got, gotAlerts := divided(w.once(at, at.Sub(begin)))
	want, wantAlerts := divided(twin.once(at, at.Sub(begin)))
	require.Equal(t, wantAlerts, gotAlerts)
	for _, all := range []samples{want, got} {
		for name, values := range all {
			if !strings.Contains(strings.SplitN(name, "{", 2)[0], ":") {
				continue
			}
			// Rules see what there is: of these evaluations, only the times are equal.
			for at := range values {
				if slices.ContainsFunc(outages, func(o [2]model.Time) bool { return o[0] <= at && at <= o[1] }) {
					values[at] = 0
				}
			}
		}
	}
	require.Equal(t, want, got)
	for _, name := range []string{"prometheus_rule_evaluation_failures_total", "prometheus_rule_group_iterations_missed_total", "promlake_queue_dropped_samples_total"} {
		require.Zero(t, w.metric(name), name)
	}
	w.stop()
	twin.stop()
}

// groups is the number of groups of rules. Each evaluates one rule at a time.
const groups = 3

// notFromHead is the number of evaluations of rules less the queries that the head answered.
func (w *world) notFromHead() float64 {
	w.t.Helper()
	return w.metric("prometheus_rule_evaluations_total") - w.metric("promlake_query_head_queries_total")
}
