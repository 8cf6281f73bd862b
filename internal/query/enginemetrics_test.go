package query_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

// timed returns how many times upstream's engine has measured each part of queries.
func (l *lake) timed() map[string]uint64 {
	l.tb.Helper()
	families, err := l.reg.Gather()
	require.NoError(l.tb, err)
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
	store := newDirStore(t)
	plain, pushed := newLake(t, store, pushNone), newLake(t, store, pushAll)
	plain.write(tenant.Default, pushRows())
	for _, a := range ways(`m1`) {
		same(t, plain.exec(t.Context(), a), pushed.exec(t.Context(), a), a)
	}
	for _, name := range []string{"prometheus_engine_query_samples_total", "prometheus_engine_query_samples_read_total"} {
		require.Positive(t, plain.counted(name))
		require.Equal(t, plain.counted(name), pushed.counted(name), name)
	}
	require.Zero(t, pushed.counted("prometheus_engine_queries"))
	want := plain.timed()
	require.NotEmpty(t, want)
	for _, twice := range []string{"queue_time", "queue_time, histogram"} { // also when a query is made
		want[twice] /= 2
	}
	require.Equal(t, want, pushed.timed())
}
