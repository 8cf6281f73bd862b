package query_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// lastHours is a range that has all of pushRows.
func lastHours(text string) asked {
	return asked{text: text, start: testNow().Add(-200 * time.Minute), end: testNow(), step: time.Minute}
}

// left returns the files under a directory except the lock.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "lock" {
			out = append(out, path)
		}
		return err
	}))
	return out
}

// TestPushedLimits: the error of a query that exceeds a limit names the limit, the amount, and the
// flag that raises it. The query leaves nothing behind, and the next one is answered.
func TestPushedLimits(t *testing.T) {
	for _, tc := range []struct {
		name, flag, text string
		settings         query.Settings
		known            bool // how far it went
	}{
		{"memory", "--query.max-memory", `sum(quantile_over_time(0.5, m1[3h]))`, query.Settings{QueryMemoryBytes: 4 << 10}, true},
		{"fetched bytes", "--query.max-fetched-bytes", `sum(rate(m1[5m]))`, query.Settings{MaxFetchedBytes: 100}, true},
		{"samples", "--query.max-samples", `rate(m1[5m])`, query.Settings{MaxSamples: 1000}, true},
		{"series", "--query.max-series", `sum(rate(m1[5m]))`, query.Settings{MaxSeries: 3}, true},
		{"seconds", "--query.timeout", `sum(rate(m1[5m]))`, query.Settings{Timeout: time.Nanosecond}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			tc.settings.MinPushedSamples, tc.settings.CacheDir = -1, t.TempDir()
			l := newLake(t, newDirStore(t), tc.settings)
			l.writeBlocks(tenant.Default, blockShape{level: key.L24h}, pushRows())
			res := l.exec(t.Context(), lastHours(tc.text))
			var limit *query.LimitError
			require.ErrorAs(t, res.Err, &limit)
			require.Equal(t, tc.flag, limit.Flag)
			require.ErrorContains(t, res.Err, tc.flag)
			require.NotContains(t, res.Err.Error(), "still in use")
			if tc.known {
				require.Greater(t, limit.Needed, limit.Value)
			}
			var timeout promql.ErrQueryTimeout
			require.Equal(t, tc.name != "seconds", limit.QueryLimit())
			require.Equal(t, tc.name == "seconds", errors.As(res.Err, &timeout), "503 as upstream")
			if tc.name != "seconds" {
				require.NoError(t, l.exec(t.Context(), lastHours("vector(1)")).Err)
			}
			require.Empty(t, left(t, tc.settings.CacheDir))
		})
	}
}

// TestPushedInParts: a query whose data does not fit into memory at once is evaluated in several
// statements, with the same answer.
func TestPushedInParts(t *testing.T) {
	store := newDirStore(t)
	plain, parts := newLake(t, store, pushNone), newLake(t, store, query.Settings{MinPushedSamples: -1, QueryMemoryBytes: 200 << 10})
	writeMixture(plain, tenant.Default, pushRowsOf(20))
	for _, text := range []string{`sum by (job) (rate(m1[5m]))`, `rate(m1[5m])`, `count(m1)`, `max by (i) (max_over_time(m1[5m]))`, `m1 * 2`} {
		before := parts.counted("promlake_query_pushed_total", "leaves")
		same(t, plain.exec(t.Context(), lastHours(text)), parts.exec(t.Context(), lastHours(text)), text)
		require.Greater(t, parts.counted("promlake_query_pushed_total", "leaves"), before+1, text)
	}
}

// TestPushedCancel: a cancelled query ends at once, as upstream's queries do, and leaves nothing
// behind.
func TestPushedCancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	l := newLake(t, newDirStore(t), query.Settings{MinPushedSamples: -1, CacheDir: dir})
	l.writeBlocks(tenant.Default, blockShape{level: key.L24h}, pushRows())
	a := lastHours(`sum(quantile_over_time(0.5, m1[3h]))`)
	for _, how := range []string{"context", "method"} {
		for after := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			q, err := l.Engine().NewRangeQuery(ctx, l, nil, a.text, a.start, a.end, a.step)
			require.NoError(t, err)
			timer := time.AfterFunc(time.Duration(after)*time.Millisecond, func() {
				if how == "method" {
					q.Cancel()
					return
				}
				cancel()
			})
			res := q.Exec(ctx)
			if timer.Stop(); res.Err != nil {
				var canceled promql.ErrQueryCanceled
				require.ErrorAs(t, res.Err, &canceled, res.Err)
				require.NotContains(t, res.Err.Error(), "still in use")
			}
			q.Close()
			cancel()
		}
	}
	require.NoError(t, l.exec(t.Context(), a).Err)
	require.Empty(t, left(t, dir))
}

// TestPushedAtOnce: queries of several tenants at once, more than may run, are all answered.
func TestPushedAtOnce(t *testing.T) {
	store := newDirStore(t)
	plain, l := newLake(t, store, pushNone), newLake(t, store, query.Settings{MinPushedSamples: -1, MaxConcurrency: 2})
	writeMixture(plain, tenant.Default, pushRows())
	writeMixture(plain, "other", pushRows()[:6])
	var wg sync.WaitGroup
	for _, id := range []string{tenant.Default, "other"} {
		ctx := tenant.With(t.Context(), id)
		for _, text := range []string{`sum by (job) (rate(m1[5m]))`, `topk(2, m1)`, `m1 / on (i, job) m2`} {
			want := plain.exec(ctx, lastHours(text))
			for range 2 {
				wg.Go(func() { same(t, want, l.exec(ctx, lastHours(text)), text) })
			}
		}
	}
	wg.Wait()
	require.Zero(t, l.counted("promlake_query_waiting"))
}

// TestQueueIsNamed: the error of a query that gives up waiting for other queries names what it
// waited for.
func TestQueueIsNamed(t *testing.T) {
	l := newLake(t, newDirStore(t), query.Settings{MaxConcurrency: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	res := l.exec(ctx, lastHours("up"))
	var timeout promql.ErrQueryTimeout
	require.ErrorAs(t, res.Err, &timeout)
	require.ErrorContains(t, res.Err, "--query.max-concurrency")
}

// TestPushedReplan: when objects vanish under a statement, the query uses a fresh snapshot, once.
func TestPushedReplan(t *testing.T) {
	for _, remote := range []bool{false, true} {
		var store objstore.Store = newDirStore(t)
		if remote {
			store = &remoteStore{Store: store}
		}
		rows := pushRows()
		l := newLake(t, store, query.Settings{MinPushedSamples: -1, MaxStaleness: time.Hour})
		a := lastHours(`sum by (job) (rate(m1[5m]))`)
		write := func() []catalog.Block { return l.writeBlocks(tenant.Default, blockShape{level: key.L24h}, rows) }
		remove := func(bs []catalog.Block) {
			for _, b := range bs {
				for _, name := range []string{block.SamplesFile(0), block.SeriesFile, block.MetaFile} {
					require.NoError(t, l.store.Delete(t.Context(), b.Key(tenant.Default).File(name)))
				}
			}
		}
		old := write()
		want := newLake(t, store, pushAll).exec(t.Context(), a)
		require.NoError(t, want.Err)
		require.NoError(t, l.exec(t.Context(), lastHours("m2")).Err, "takes the snapshot; samples of m1 would be kept")
		b := write()
		l.commit(tenant.Default, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(x catalog.Block) bool {
				return slices.ContainsFunc(old, func(o catalog.Block) bool { return o.ID == x.ID })
			})
			return m, nil
		})
		remove(old)
		same(t, want, l.exec(t.Context(), a), "through a snapshot that has the old blocks")
		if !remote { // what was fetched is kept
			require.NotZero(t, l.counted("promlake_query_replans_total"))
		}
		remove(b)
		fresh := newLake(t, store, pushAll)
		var gone *query.GoneError
		var storage promql.ErrStorage
		res := fresh.exec(t.Context(), a)
		require.ErrorAs(t, res.Err, &gone)
		require.ErrorAs(t, res.Err, &storage, "500 as upstream")
		require.ErrorIs(t, res.Err, objstore.ErrNotFound)
		require.NotZero(t, fresh.counted("promlake_query_replans_total"))
	}
}

// TestPushedStatistics: the reads of statements are counted, in the metrics and for the request.
func TestPushedStatistics(t *testing.T) {
	l := newLake(t, newDirStore(t), pushAll)
	l.writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 50}, pushRows())
	st := &request.Stats{}
	require.NoError(t, l.exec(request.WithStats(t.Context(), st), lastHours(`sum(rate(m1{i="1"}[5m]))`)).Err)
	got := st.Totals()
	require.Positive(t, got.RowGroups.Read)
	require.Greater(t, got.RowGroups.Considered, got.RowGroups.Read)
	require.Positive(t, got.Bytes.Read)
	require.Equal(t, float64(got.RowGroups.Read), l.counted("promlake_query_row_groups_total", "read"))
}

// TestPushedAsOf: a pushed query as of a past time reads the samples that were visible then.
func TestPushedAsOf(t *testing.T) {
	l := newLake(t, newDirStore(t), pushAll)
	row := func(i string) []segment.Row {
		return []segment.Row{{Labels: metric("m", "i", i), Floats: []segment.Float{{T: testNow().UnixMilli() - minute, V: 1}}}}
	}
	l.write(tenant.Default, row("old"))
	before := testNow().Add(time.Minute)
	l.seq += 3_600_000 // an hour of segment ids
	l.write(tenant.Default, row("late"))
	count := func(ctx context.Context) float64 {
		res := l.exec(ctx, asked{text: "count(m)", end: testNow()})
		require.NoError(t, res.Err)
		return res.Value.(promql.Vector)[0].F
	}
	require.Equal(t, 2.0, count(t.Context()))
	require.Equal(t, 1.0, count(request.WithAsOf(t.Context(), before)))
	require.Equal(t, 2.0, l.counted("promlake_query_subtrees_total"))
}

// TestPushedLabelIsOrdinary: queries may use the label by which the engine identifies pushed
// subtrees like any other label.
func TestPushedLabelIsOrdinary(t *testing.T) {
	l := newLake(t, newDirStore(t), pushAll)
	l.write(tenant.Default, []segment.Row{{Labels: metric("m", "__promlake_pushed__", "0"), Floats: []segment.Float{{T: testNow().UnixMilli(), V: 7}}}})
	for text, want := range map[string]int{`{__promlake_pushed__="0"}`: 1, `{__promlake_pushed__="1"}`: 0, `sum(m) + on () {__promlake_pushed__="0"}`: 1} {
		q, err := l.Engine().NewInstantQuery(t.Context(), l, nil, text, testNow())
		require.NoError(t, err)
		res := q.Exec(t.Context())
		require.NoError(t, res.Err)
		require.Len(t, res.Value, want, text)
		q.Close()
	}
}

// TestHostileQueriesAreRefusedBeforeTheyAreEvaluated: what upstream's engine would allocate for
// these is more than machines have.
func TestHostileQueriesAreRefusedBeforeTheyAreEvaluated(t *testing.T) {
	doubled := func(n int, text string) string {
		for range n {
			text = `label_join(` + text + `, "a", "", "a", "a")`
		}
		return text
	}
	const steps, memory = "--query.max-subquery-steps", "--query.max-memory"
	const walked = `sum_over_time(sum_over_time(vector(1)[10d:1s])[10d:1s])` // at few steps, in windows of very many
	l := newLake(t, newDirStore(t), query.Settings{})
	l.writeBlocks(tenant.Default, blockShape{level: key.L24h}, pushRows())
	for _, tc := range []struct{ text, flag string }{
		{`sum_over_time(vector(1)[100y:1ms])`, steps},
		{`sum_over_time(vector(1)[30d:1ms])`, steps},
		{`max_over_time(max_over_time(max_over_time(m1[30d:1m])[30d:1m])[10y:1m])`, steps},
		{`sum_over_time(sum_over_time(vector(1)[1h:10s])[1d:1m])`, ""},
		{walked, steps},
		{`vector(1) + sum_over_time(m1[10y:1s] offset 1h)`, steps},
		{`vector(1)[100y:1ms]`, steps},
		{doubled(40, `label_replace(m1, "a", "xx", "", "")`), memory},
		{doubled(40, `label_replace(vector(1), "a", "xx", "", "")`), memory},
		{`count_values("a", ` + doubled(40, `count_values("a", m1)`) + `)`, memory},
		{doubled(4, `label_replace(m1, "a", "xx", "", "")`), ""},
	} {
		for _, asked := range []asked{lastHours(tc.text), {text: tc.text, start: testNow(), end: testNow()}} {
			if tc.text == `vector(1)[100y:1ms]` && asked.step > 0 {
				continue
			}
			res := l.exec(t.Context(), asked)
			if tc.flag == "" {
				require.NoError(t, res.Err, tc.text)
				continue
			}
			var limit *query.LimitError
			require.ErrorAs(t, res.Err, &limit, tc.text)
			require.Equal(t, tc.flag, limit.Flag, tc.text)
			require.Greater(t, limit.Needed, limit.Value)
			require.True(t, limit.QueryLimit())
			if tc.text == walked {
				continue // whether the engine walks is known when SQL has done its part
			}
			_, err := l.Explain(t.Context(), query.Question{Text: tc.text, Start: asked.start, End: asked.end, Step: asked.step})
			require.ErrorAs(t, err, &limit, tc.text)
			require.Equal(t, tc.flag, limit.Flag, tc.text)
		}
	}
}
