package query_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/laketest"
)

const (
	coldScrape = 43_200 // ms: 2000 samples a day
	coldDay    = 24 * 60 * 60 * 1000
)

// writeColdBlock stores a 24h block of jobs of 1,000 series each.
func writeColdBlock(tb testing.TB, l *laketest.Lake, jobs, perJob, samples int) {
	tb.Helper()
	k := key.Block{Tenant: tenant.Default, Level: key.L24h, Window: 0, ID: l.NextID()}
	table := series.NewTable(7)
	var refs []series.Ref
	for j := range jobs {
		for i := range perJob {
			ref, err := table.Intern([]series.Label{
				{Name: "__name__", Value: "m"}, {Name: "g", Value: fmt.Sprint(i % 10)}, {Name: "instance", Value: fmt.Sprintf("host-%04d:9100", i)}, {Name: "job", Value: fmt.Sprintf("job-%02d", j)},
			})
			require.NoError(tb, err)
			refs = append(refs, ref)
		}
	}
	view := table.View()
	w, err := block.NewWriter(laketest.BlockFiles{TB: tb, Store: l.Store, Key: k}, &view, block.Options{Level: key.L24h})
	require.NoError(tb, err)
	rng := rand.New(rand.NewPCG(1, 2))
	s := block.Samples{TS: make([]int64, samples), V: make([]float64, samples)}
	for _, ref := range refs { // interned in the order of a block
		v := 0
		for i := range samples {
			v += rng.IntN(1000)
			s.TS[i], s.V[i] = int64(i)*(coldDay/int64(samples)), float64(v)/100
		}
		require.NoError(tb, w.Append(ref, &s))
	}
	m, err := w.Close(block.Header{Level: key.L24h, Rank: l.NextID()})
	require.NoError(tb, err)
	l.Commit(tenant.Default, func(c catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		c.Blocks = append(c.Blocks, catalog.Block{
			Level: key.L24h, ID: k.ID, Rank: m.Rank, MinT: m.MinT, MaxT: m.MaxT, Series: m.Series, Samples: m.Floats, Bytes: m.Bytes(),
		})
		return c, nil
	})
}

// askDay evaluates a query over the day and returns the answer as text.
func askDay(tb testing.TB, st *query.Stage, text string) string {
	tb.Helper()
	q, err := st.Engine().NewRangeQuery(tb.Context(), st, nil, text, time.UnixMilli(0), time.UnixMilli(coldDay-1), 5*time.Minute)
	require.NoError(tb, err)
	defer q.Close()
	res := q.Exec(tb.Context())
	require.NoError(tb, res.Err)
	return res.String()
}

// TestColdRead: a process with empty caches makes three rounds of requests to the store, one after
// another, for a query of a tenant's block and segment: for the listing and an early manifest; for
// the manifest, meta.json, the series table and the segment; and for the samples of all selectors.
// With a fake clock, the duration of the query yields the number of rounds. The query fetches only
// the bytes that it needs.
func TestColdRead(t *testing.T) {
	const delay = 30 * time.Millisecond
	dir := laketest.NewDir(t)
	l := laketest.New(t, dir, query.Settings{})
	writeColdBlock(t, l, 4, 100, 3000)
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", "g", "7", "job", "job-01", "instance", "new"), Floats: []segment.Float{{T: coldDay - 5000, V: 1}}}})
	needed, between := samplesOfSeries(t, dir, 100, 199)
	both, more := samplesOfSeries(t, dir, 100, 399)
	const one, two = `max by (g) (rate(m{job="job-01"}[10m]))`, `max by (g) (rate(m{job="job-01"}[10m])) - min by (g) (max_over_time(m{job="job-03"}[5m]))`
	for _, tc := range []struct {
		name, text      string
		pushed          int64 // Settings.MinPushedSamples
		needed, between int64
	}{
		{"in SQL", one, -1, needed, between},
		{"in the engine", one, math.MaxInt64, needed, between},
		{"two leaves", two, -1, needed, both + more},
		{"two subtrees", `count_values("v", ` + one + `) + on () group_left count(m{job="job-03"})`, -1, needed, both + more},
		{"two of the engine's", two, math.MaxInt64, needed, both + more},
		{"some in SQL", two + ` + on (g) group_left count by (g) (m{job="job-01",instance="host-0007:9100"})`, 5000, needed, both + more},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := askDay(t, laketest.New(t, dir, query.Settings{MinPushedSamples: tc.pushed}).Stage, tc.text)
			cache := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store := laketest.NewDistant(dir, delay)
				st := laketest.New(t, store, query.Settings{CacheDir: cache, MinPushedSamples: tc.pushed, Threads: 2}).Stage
				begun := time.Now()
				require.True(t, want == askDay(t, st, tc.text), "the answer")
				require.Equal(t, 3*delay, time.Since(begun), "round trips")
				require.Equal(t, map[string]int{"list": 1, "manifest.json": 2, "meta.json": 1, "series.parquet": 1, "segment": 1, "samples": 1}, store.Count)
				require.GreaterOrEqual(t, store.Bytes["samples"], tc.needed)
				require.LessOrEqual(t, store.Bytes["samples"], tc.needed+tc.between)

				begun = time.Now()
				require.True(t, want == askDay(t, st, tc.text), "the answer")
				require.Equal(t, 2*delay, time.Since(begun), "only whether there is something new")
				require.Equal(t, 2+3, store.Count["list"]+store.Count["manifest.json"])
				require.Equal(t, 1, store.Count["samples"])
			})
		})
	}
}

// TestColdSQL: a statement over several batches of series fetches their samples at once.
func TestColdSQL(t *testing.T) {
	dir := laketest.NewDir(t)
	writeColdBlock(t, laketest.New(t, dir, query.Settings{}), 4, 50, 2000)
	store := laketest.NewDistant(dir, 0)
	l := laketest.New(t, store, query.Settings{CacheDir: t.TempDir(), Threads: 2})
	require.Equal(t, []string{"400000"}, l.Rows("SELECT count(*) FROM samples"))
	require.Equal(t, map[string]int{"list": 1, "manifest.json": 2, "meta.json": 1, "series.parquet": 1, "samples": 1}, store.Count)
}

// TestNoDuckDB: what needs no statement does not open DuckDB, whose directory would be there.
func TestNoDuckDB(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	l := laketest.New(t, laketest.NewDir(t), query.Settings{CacheDir: cache, MinPushedSamples: -1})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, laketest.PushRows())
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m1", "i", "late"), Floats: []segment.Float{{T: laketest.Now().UnixMilli() - 1000, V: 1}}}})
	for _, text := range []string{`m1`, `rate(m1[5m])`, `max_over_time(m1[5m] offset 3m)`, `vector(1)`, `count_values("v", m1)`} {
		require.NoError(t, l.Exec(t.Context(), lastHours(text)).Err)
	}
	q, err := l.Querier(0, laketest.Now().UnixMilli())
	require.NoError(t, err)
	names, _, err := q.LabelNames(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, names)
	require.NoDirExists(t, cache)
	require.NoError(t, l.Exec(t.Context(), lastHours(`sum(m1)`)).Err)
	require.DirExists(t, cache)
}

// samplesOfSeries returns the size of the values and times of the row groups that have rows of a
// range of series, and the size of the other columns in these groups.
func samplesOfSeries(t *testing.T, dir *laketest.Dir, first, last int64) (needed, between int64) {
	t.Helper()
	for _, m := range metasOf(t, dir) {
		for _, f := range m.Files {
			for _, g := range f.RowGroups {
				if !strings.HasPrefix(f.Name, "samples-") || g.FirstSeries > last || g.LastSeries < first {
					continue
				}
				for i, c := range g.Columns {
					switch {
					case i < 2: // metric and series_id
						between += c[1]
					case !slices.Contains(g.Columns[:i], c): // no alias
						needed += c[1]
					}
				}
			}
		}
	}
	return needed, between
}

// BenchmarkColdRead queries a new stage with an empty cache for 1,000 of 10,000 series over a day
// of 20 million samples in one block. A request to the store takes 30 ms.
func BenchmarkColdRead(b *testing.B) {
	dir := laketest.NewDir(b)
	writeColdBlock(b, laketest.New(b, dir, query.Settings{}), 10, 1000, 2000)
	for _, text := range []string{`sum by (g) (rate(m{job="job-03"}[10m]))`, `sum by (g) (rate(m{g="3"}[10m]))`, `sum by (g) (rate(m{job="job-03"}[10m])) / sum by (g) (rate(m{job="job-07"}[10m]))`, `m{job="job-03",instance="host-0500:9100"}`} {
		b.Run("query="+strings.ReplaceAll(text, " ", ""), func(b *testing.B) {
			var requests, bytes float64
			best, cpu := time.Hour, processorTime(b)
			for b.Loop() {
				store := laketest.NewDistant(dir, 30*time.Millisecond)
				begun := time.Now()
				st := laketest.New(b, store, query.Settings{}).Stage
				require.NotEmpty(b, askDay(b, st, text))
				best = min(best, time.Since(begun))
				require.NoError(b, st.Close())
				for k, n := range store.Count {
					requests, bytes = requests+float64(n), bytes+float64(store.Bytes[k])
				}
			}
			b.ReportMetric(float64(best.Milliseconds()), "best-ms")
			b.ReportMetric(float64((processorTime(b)-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(requests/float64(b.N), "requests/op")
			b.ReportMetric(bytes/float64(b.N), "bytes/op")
		})
	}
}

// processorTime returns what this process has used so far, with all of its threads.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
