package query_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSegmentsOfOthersAreNotRead: the filters in footers exclude nearly all segments without a host,
// whether memory is ample or not.
func TestSegmentsOfOthersAreNotRead(t *testing.T) {
	const segments = 100
	for _, bytes := range []int64{0, 1} {
		t.Run(fmt.Sprintf("%d bytes", bytes), func(t *testing.T) {
			l := laketest.New(t, laketest.NewDir(t), query.Settings{IndexCacheBytes: bytes})
			for i := range int64(segments) {
				var rows []segment.Row
				for m := range 3 {
					lset := laketest.Metric(fmt.Sprintf("m%d", m), "host", fmt.Sprintf("host_%d", i))
					rows = append(rows, segment.Row{Labels: lset, Floats: []segment.Float{{T: i, V: 1}}})
				}
				l.Write(tenant.Default, rows)
			}
			r, err := l.Resolve(t.Context(), 0, segments, laketest.Equal(model.MetricNameLabel, "m1"), laketest.Equal("host", "host_42"))
			require.NoError(t, err)
			require.Len(t, r.Labels, 1)
			require.Less(t, l.Counted("promlake_query_cache_misses_total", "selection"), segments/10.)
			require.Less(t, l.Counted("promlake_query_cache_misses_total", "index"), segments/10.)
		})
	}
}
