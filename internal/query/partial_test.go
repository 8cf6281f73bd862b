package query_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

// TestWholeTables: a table is read as a whole at once if there is ample room for it, and once many
// selectors have read rows of it if there is some.
func TestWholeTables(t *testing.T) {
	const series, selectors = 1000, 40 // about 72 kB of tables and samples
	store := newDirStore(t)
	var rows []segment.Row
	for i := range series {
		rows = append(rows, segment.Row{Labels: metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: 1000, V: float64(i)}}})
	}
	newLake(t, store, query.Settings{}).write(tenant.Default, rows)
	for _, tc := range []struct {
		name  string
		bytes int64
		first int // selector that reads the whole table
	}{
		{"ample room", 1 << 20, 0},
		{"limited room", 192 << 10, 16},
		{"no room", 64 << 10, selectors},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLake(t, store, query.Settings{IndexCacheBytes: tc.bytes})
			for i := range selectors {
				got := query1(t, l, 0, 10_000, nil, equal(model.MetricNameLabel, "m"), equal("i", fmt.Sprint(i)))
				require.Equal(t, []string{fmt.Sprintf(`{__name__="m", i="%d"}: 1000=%d`, i, i)}, got)
				whole := 0.0
				if i >= tc.first {
					whole = 1
				}
				require.Equal(t, whole, l.counted("promlake_query_cache_misses_total", "index"), i)
			}
		})
	}
}
