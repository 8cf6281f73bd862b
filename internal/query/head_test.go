package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestHead: a stage whose process keeps the last samples by series answers as one that reads
// objects, also where objects of others, histograms, and samples out of order come in between.
func TestHead(t *testing.T) {
	used, longer, seeds := 0.0, 0, laketest.Rounds(6)
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			all, some := testHead(t, seed)
			used, longer = used+all, longer+some
		})
	}
	require.Greater(t, used, float64(400*seeds/12), "queries from the head")
	require.Greater(t, longer, 100*seeds/12, "queries whose last samples are from the head")
}

func testHead(t *testing.T, seed uint64) (used float64, longer int) {
	store, kept := laketest.NewDir(t), recent.New(1<<20, nil, laketest.Now)
	kept.KeepHeads(1<<20, true, nil)
	reading := laketest.New(t, store, query.Settings{})
	l := laketest.New(t, store, query.Settings{Recent: kept})
	rng := rand.New(rand.NewPCG(seed, 6))
	table := series.NewTable(1)
	known := recent.NewLabels(viewOf(table))
	at := laketest.Now().Add(-recent.Retention+20*time.Second).UnixMilli() - 400_000
	window := func(t int64) key.Window { return key.WindowOf(t) }
	var own []recent.Source // what is not merged yet
	var rows []segment.Row
	scrape := func() (out []segment.Row) {
		at += 10_000
		for i := range 12 {
			if rng.IntN(8) == 0 {
				continue
			}
			r := segment.Row{Labels: laketest.Metric("m", "i", fmt.Sprint(i), "j", fmt.Sprint(i%3)), Floats: []segment.Float{{T: at + int64(i), V: float64(at/1000 + int64(i*rng.IntN(50)))}}}
			switch rng.IntN(30) {
			case 0:
				r.Floats[0].V = math.Float64frombits(value.StaleNaN)
			case 1:
				r.Floats = append(r.Floats, segment.Float{T: at + int64(i) + 100, V: rng.Float64()})
			}
			out = append(out, r)
		}
		return out
	}
	write := func(rows []segment.Row) {
		name := l.WriteSegment(tenant.Default, window(at), rows, nil).String()
		b, err := segmenttest.BatchIn(table, rows, nil)
		require.NoError(t, err)
		known.Extend(b.View)
		size := size(l, name)
		content := kept.Of(b, known)
		kept.Put(name, size, content)
		kept.Stored(tenant.Default, name, content)
		own = append(own, recent.Source{Name: name, MaxT: at + 1000})
	}
	texts := []string{`m`, `rate(m[1m])`, `sum by (j) (rate(m{i!="3"}[2m]))`, `count_over_time(m[7m])`, `m{i="4"} / on (j) group_left m{i="7"}`, `max(m) - min(m{j=~"1|2"})`, `absent(m{i="99"})`, `avg_over_time(sum(m)[1m:10s])`, `histogram_count(m)`, `sum(m offset 30s)`, `timestamp(m{i="2"})`,
		`sum by (j) (rate(m[1m])) * on (j) group_right rate(m[1m])`, `rate(m[1m]) - on (j) group_left max by (j) (rate(m[1m]))`, `sum by (__name__) (last_over_time(m[1m]))`}
	for n := range 40 {
		rows = append(rows, scrape()...)
		if n%20 == 9 {
			l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, laketest.Joined(rows))
			rows = nil
		} else if rng.IntN(5) == 0 {
			l.WriteSegment(tenant.Default, window(at), laketest.Joined(rows), nil)
			rows = nil
		}
	}
	l.WriteSegment(tenant.Default, window(at), laketest.Joined(rows), nil)
	rows = nil
	begin := at
	var last []segment.Row
	l.KeepRecent(tenant.Default)
	for n := range 69 {
		next := scrape()
		switch more := rng.IntN(150); {
		case more == 0:
			l.WriteSegment(tenant.Default, window(at), next, nil) // of another process
			continue
		case more == 1:
			next[0].Floats[0].T -= 30_000
		case more == 2:
			next = append(next, segment.Row{Labels: laketest.Metric("m", "i", "hist"), Hists: []segment.Hist{{T: at, H: tsdbutil.GenerateTestHistogram(int64(n))}}})
		}
		if rng.IntN(40) == 0 { // its writer begins a new table
			table = series.NewTable(1)
			known = recent.NewLabels(viewOf(table))
		}
		if rng.IntN(20) == 0 { // its sender sends what it sent last once more
			write(last)
		}
		if last = next; rng.IntN(20) == 0 { // and with it
			next = laketest.Joined(append(slices.Clone(next), scrape()...))
			write(last)
		}
		write(next)
		rows = append(rows, next...)
		if n%10 == 9 {
			b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.Part}, laketest.Joined(rows))
			require.Len(t, b, 1)
			kept.Head(tenant.Default).Merged(b[0].Key(tenant.Default).File(block.SeriesFile), own)
		}
		ctx := query.WithSince(t.Context(), laketest.Now().Add(time.Duration(n+1)*time.Second))
		for range 4 {
			text := texts[rng.IntN(len(texts))]
			a := laketest.Query{Text: text, End: time.UnixMilli(at + 1)}
			if rng.IntN(2) == 0 {
				a.Start, a.Step = a.End.Add(-time.Duration(rng.IntN(60))*time.Second), 7*time.Second
			}
			if rng.IntN(2) == 0 {
				a.Start, a.Step = a.End.Add(-time.Duration(rng.IntN(1500))*time.Second), 37*time.Second
			}
			before := l.Counted("promlake_query_head_queries_total")
			require.Equal(t, reading.Exec(ctx, a).String(), l.Exec(ctx, a).String(), a)
			if a.Step > 0 && a.Start.UnixMilli() < begin && l.Counted("promlake_query_head_queries_total") > before {
				longer++
			}
		}
	}
	require.Zero(t, reading.Counted("promlake_query_head_queries_total"))
	return l.Counted("promlake_query_head_queries_total"), longer
}

// TestObjectsAreLocatedOnce: a query that no head answers looks the live objects up once.
func TestObjectsAreLocatedOnce(t *testing.T) {
	kept := recent.New(1<<20, nil, laketest.Now)
	kept.KeepHeads(1<<20, true, nil)
	l := laketest.New(t, laketest.NewDir(t), query.Settings{Recent: kept})
	at := laketest.Now().Add(-time.Minute)
	l.WriteSegment(tenant.Default, key.WindowOf(at.UnixMilli()), []segment.Row{{Labels: laketest.Metric("m"), Floats: []segment.Float{{T: at.UnixMilli(), V: 1}}}}, nil)
	ask := func() {
		require.Equal(t, "{__name__=\"m\"} => 1 @["+fmt.Sprint(at.UnixMilli())+"]", l.Exec(t.Context(), laketest.Query{Text: "m", End: at}).String())
	}
	ask()
	for range 3 {
		before := l.Counted("promlake_query_cache_hits_total", "footer")
		ask()
		require.Equal(t, 1., l.Counted("promlake_query_cache_hits_total", "footer")-before)
	}
}

// viewOf returns a view of a table.
func viewOf(t *series.Table) *series.View {
	v := t.View()
	return &v
}

// size returns the bytes of an object.
func size(l *laketest.Lake, name string) int64 {
	l.TB.Helper()
	body, object, err := l.Store.Get(l.TB.Context(), name, 0, -1)
	require.NoError(l.TB, err)
	require.NoError(l.TB, body.Close())
	return object.Size
}
