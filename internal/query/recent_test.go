package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestRecentSegments: a stage that has the content of segments in memory answers as one that reads
// their objects, with and without room for whole series tables.
func TestRecentSegments(t *testing.T) {
	for name, room := range map[string]int64{"ample": 0, "none": 1} {
		t.Run(name, func(t *testing.T) { testRecentSegments(t, room) })
	}
}

func testRecentSegments(t *testing.T, room int64) {
	store, kept := laketest.NewDir(t), recent.New(1<<20, nil, laketest.Now)
	reading := laketest.New(t, store, query.Settings{UseStartTimestamps: true})
	l := laketest.New(t, store, query.Settings{UseStartTimestamps: true, Recent: kept, IndexCacheBytes: room})
	rng := rand.New(rand.NewPCG(5, 6))
	keep := func(rows []segment.Row, seg key.Segment, size int) {
		b, err := segmenttest.Batch(rows, nil)
		require.NoError(t, err)
		kept.Put(seg.String(), int64(size), kept.Of(b, recent.NewLabels(b.View)))
	}
	size := func(rows []segment.Row) int {
		b, _, err := segmenttest.Encode(rows, nil)
		require.NoError(t, err)
		return len(b)
	}
	scrape := func(at, step int64) (rows []segment.Row) {
		for i := range 20 {
			rows = append(rows, segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: at + step*rng.Int64N(10), V: rng.Float64()}}})
		}
		return rows
	}
	for n := range int64(12) {
		at, step := n*100_000, int64(7)
		if n%4 == 3 {
			step = 9_000 // the times of a segment take more than 16 bits
		}
		rows := scrape(at, step)
		switch n {
		case 5:
			rows[3].Floats = append(rows[3].Floats, segment.Float{T: at + 90, V: 3})
		case 6:
			rows[4].Hists = []segment.Hist{{T: at + 95, H: tsdbutil.GenerateTestHistogram(1)}}
		case 7:
			rows[5].Exemplars = []exemplar.Exemplar{{Ts: at, HasTs: true, Value: 1}}
		case 8:
			rows[6].Floats[0].ST = at - 5
		}
		keep(rows, l.WriteSegment(tenant.Default, 0, rows, nil), size(rows))
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, scrape(50_000, 7)) // its identifiers are stored
	resolved, err := l.Resolve(t.Context(), 0, 2_000_000, laketest.Equal(model.MetricNameLabel, "m"))
	require.NoError(t, err)
	same, err := reading.Resolve(t.Context(), 0, 2_000_000, laketest.Equal(model.MetricNameLabel, "m"))
	require.NoError(t, err)
	require.Equal(t, same, resolved)
	require.Len(t, resolved.Labels, 20)
	for _, text := range []string{`m`, `m{i="3"}`, `m{i=~"1|17",i!="1"}`, `{i="7"}`, `{__name__=~"m|n",i!~"[02-9]|1.+"}`, `m{i="3",absent=""}`, `m{i="none"}`, `m{absent="3"}`, `n`, `sum(rate(m[6m]))`, `count_over_time(m{i=~"[3-6]"}[20m])`, `m[20m]`, `timestamp(m)`} {
		for _, end := range []int64{350_000, 800_000, 1_199_000} {
			a := laketest.Query{Text: text, End: time.UnixMilli(end)}
			require.Equal(t, reading.Exec(t.Context(), a).String(), l.Exec(t.Context(), a).String(), text)
		}
	}

	rows := scrape(1_300_000, 7)
	seg := l.WriteSegment(tenant.Default, 0, rows, nil)
	rows[0].Floats[0].V = 1234
	keep(rows, seg, size(rows)+1)
	ask := laketest.Query{Text: `max(m)`, End: time.UnixMilli(1_300_100)}
	ctx := query.WithSince(t.Context(), laketest.Now().Add(time.Second))
	require.NotContains(t, l.Exec(ctx, ask).String(), "1234", "an object of another size is not the one that was kept")
	rows = scrape(1_400_000, 7)
	seg = l.WriteSegment(tenant.Default, 0, rows, nil)
	n := size(rows)
	rows[0].Floats[0].V = 1234
	keep(rows, seg, n)
	for _, text := range []string{`max(m)`, `max(m{i="0"})`} {
		ask = laketest.Query{Text: text, End: time.UnixMilli(1_400_100)}
		require.Contains(t, l.Exec(query.WithSince(t.Context(), laketest.Now().Add(2*time.Second)), ask).String(), "1234", "the content comes from memory")
	}
}
