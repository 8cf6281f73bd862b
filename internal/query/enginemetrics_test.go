package query_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/tests/support/laketest"
)

// timed returns how many times upstream's engine has measured each part of queries.
func timed(l *laketest.Lake) map[string]uint64 {
	l.TB.Helper()
	families, err := l.Registry.Gather()
	require.NoError(l.TB, err)
	out := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, p := range m.GetLabel() {
				switch f.GetName() {
				case "prometheus_engine_query_duration_seconds":
					out[p.GetValue()] += m.GetSummary().GetSampleCount()
				case "prometheus_engine_query_duration_histogram_seconds":
					out[p.GetValue()+", histogram"] += m.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return out
}

// TestQueriesCountInTheEnginesMetrics: a query that is pushed down as a whole counts in the metrics
// of upstream's engine as one that the engine evaluates.
func TestQueriesCountInTheEnginesMetrics(t *testing.T) {
	store := laketest.NewDir(t)
	plain, pushed := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, laketest.PushAll)
	plain.Write(tenant.Default, laketest.PushRows())
	for _, a := range laketest.Ways(`m1`) {
		laketest.Same(t, plain.Exec(t.Context(), a), pushed.Exec(t.Context(), a), a)
	}
	for _, name := range []string{"prometheus_engine_query_samples_total", "prometheus_engine_query_samples_read_total"} {
		require.Positive(t, plain.Counted(name))
		require.Equal(t, plain.Counted(name), pushed.Counted(name), name)
	}
	require.Zero(t, pushed.Counted("prometheus_engine_queries"))
	want := timed(plain)
	require.NotEmpty(t, want)
	for _, twice := range []string{"queue_time", "queue_time, histogram"} { // also when a query is made
		want[twice] /= 2
	}
	require.Equal(t, want, timed(pushed))
}
