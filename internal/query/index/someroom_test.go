package index_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// scrapedRows returns a sample of each series of forty hosts.
func scrapedRows() []segment.Row {
	var rows []segment.Row
	for host := range 40 {
		for i := range 500 {
			rows = append(rows, segment.Row{
				Labels: labels.FromStrings("__name__", fmt.Sprintf("node_metric_with_some_name_%d_total", i/8), fmt.Sprintf("label_%d", i/10), fmt.Sprint(i%8),
					"env", "production", "host_number", fmt.Sprint(host), "instance", fmt.Sprintf("host_%d:9100", host), "job", "node_exporter"),
				Floats: []segment.Float{{T: int64(host), V: float64(i % 97)}},
			})
		}
	}
	return rows
}

// ofHost selects eight series of a host.
func ofHost(host int) index.Some {
	return index.Some{Seed: seed, Most: math.MaxInt, Sets: [][]*labels.Matcher{{
		labels.MustNewMatcher(labels.MatchEqual, "__name__", "node_metric_with_some_name_3_total"),
		labels.MustNewMatcher(labels.MatchEqual, "instance", fmt.Sprintf("host_%d:9100", host)),
	}}}
}

// TestSomeAtOnce: tables that are read at the same time, and one after the other, share no memory.
func TestSomeAtOnce(t *testing.T) {
	whole, some := asSegment(t, scrapedRows())
	const readers, times = 4, 40
	var got [readers][times]*index.Table
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := range times {
				var err error
				if got[r][i], err = some(t.Context(), ofHost((r+i)%40)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for r := range got {
		for i, table := range got[r] {
			rows, err := whole.Select(t.Context(), ofHost((r + i) % 40).Sets[0])
			require.NoError(t, err)
			require.Equal(t, 8, table.Rows())
			compareSome(t, true, whole, table, rows)
		}
	}
}

// TestSomeGarbage: to read a few rows of a segment leaves less garbage than its label columns take,
// if there is memory of an earlier read.
func TestSomeGarbage(t *testing.T) {
	file, _, err := segmenttest.Encode(scrapedRows(), nil)
	require.NoError(t, err)
	least := uint64(math.MaxUint64)
	var before, after runtime.MemStats
	for i := range 100 {
		runtime.ReadMemStats(&before)
		_, err := ofHost(i%40).Segment(t.Context(), bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	require.Less(t, least, uint64(60<<10))
}
