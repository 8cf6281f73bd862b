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
	"github.com/promlake/promlake/tests/support/laketest"
)

// lastHours is a range that has all of laketest.PushRows.
func lastHours(text string) laketest.Query {
	return laketest.Query{Text: text, Start: laketest.Now().Add(-200 * time.Minute), End: laketest.Now(), Step: time.Minute}
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
			l := laketest.New(t, laketest.NewDir(t), tc.settings)
			l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, laketest.PushRows())
			res := l.Exec(t.Context(), lastHours(tc.text))
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
				require.NoError(t, l.Exec(t.Context(), lastHours("vector(1)")).Err)
			}
			require.Empty(t, left(t, tc.settings.CacheDir))
		})
	}
}

// TestPushedInParts: a query whose data does not fit into memory at once is evaluated in several
// statements, with the same answer.
func TestPushedInParts(t *testing.T) {
	store := laketest.NewDir(t)
	plain, parts := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, query.Settings{MinPushedSamples: -1, QueryMemoryBytes: 200 << 10})
	laketest.WriteMixture(plain, tenant.Default, laketest.PushRowsOf(20))
	for _, text := range []string{`sum by (job) (rate(m1[5m]))`, `rate(m1[5m])`, `count(m1)`, `max by (i) (max_over_time(m1[5m]))`, `m1 * 2`} {
		before := parts.Counted("promlake_query_pushed_total", "leaves")
		laketest.Same(t, plain.Exec(t.Context(), lastHours(text)), parts.Exec(t.Context(), lastHours(text)), text)
		require.Greater(t, parts.Counted("promlake_query_pushed_total", "leaves"), before+1, text)
	}
}

// TestPushedCancel: a cancelled query ends at once, as upstream's queries do, and leaves nothing
// behind.
func TestPushedCancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MinPushedSamples: -1, CacheDir: dir})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, laketest.PushRows())
	a := lastHours(`sum(quantile_over_time(0.5, m1[3h]))`)
	for _, how := range []string{"context", "method"} {
		for after := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			q, err := l.Engine().NewRangeQuery(ctx, l, nil, a.Text, a.Start, a.End, a.Step)
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
	require.NoError(t, l.Exec(t.Context(), a).Err)
	require.Empty(t, left(t, dir))
}

// TestPushedAtOnce: queries of several tenants at once, more than may run, are all answered.
func TestPushedAtOnce(t *testing.T) {
	store := laketest.NewDir(t)
	plain, l := laketest.New(t, store, laketest.PushNone), laketest.New(t, store, query.Settings{MinPushedSamples: -1, MaxConcurrency: 2})
	laketest.WriteMixture(plain, tenant.Default, laketest.PushRows())
	laketest.WriteMixture(plain, "other", laketest.PushRows()[:6])
	var wg sync.WaitGroup
	for _, id := range []string{tenant.Default, "other"} {
		ctx := tenant.With(t.Context(), id)
		for _, text := range []string{`sum by (job) (rate(m1[5m]))`, `topk(2, m1)`, `m1 / on (i, job) m2`} {
			want := plain.Exec(ctx, lastHours(text))
			for range 2 {
				wg.Go(func() { laketest.Same(t, want, l.Exec(ctx, lastHours(text)), text) })
			}
		}
	}
	wg.Wait()
	require.Zero(t, l.Counted("promlake_query_waiting"))
}

// TestQueueIsNamed: the error of a query that gives up waiting for other queries names what it
// waited for.
func TestQueueIsNamed(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{MaxConcurrency: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	res := l.Exec(ctx, lastHours("up"))
	var timeout promql.ErrQueryTimeout
	require.ErrorAs(t, res.Err, &timeout)
	require.ErrorContains(t, res.Err, "--query.max-concurrency")
}

// TestPushedReplan: when objects vanish under a statement, the query uses a fresh snapshot, once.
func TestPushedReplan(t *testing.T) {
	for _, remote := range []bool{false, true} {
		var store objstore.Store = laketest.NewDir(t)
		if remote {
			store = &laketest.Remote{Store: store}
		}
		rows := laketest.PushRows()
		l := laketest.New(t, store, query.Settings{MinPushedSamples: -1, MaxStaleness: time.Hour})
		a := lastHours(`sum by (job) (rate(m1[5m]))`)
		write := func() []catalog.Block { return l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows) }
		remove := func(bs []catalog.Block) {
			for _, b := range bs {
				for _, name := range []string{block.SamplesFile(0), block.SeriesFile, block.MetaFile} {
					require.NoError(t, l.Store.Delete(t.Context(), b.Key(tenant.Default).File(name)))
				}
			}
		}
		old := write()
		want := laketest.New(t, store, laketest.PushAll).Exec(t.Context(), a)
		require.NoError(t, want.Err)
		require.NoError(t, l.Exec(t.Context(), lastHours("m2")).Err, "takes the snapshot; samples of m1 would be kept")
		b := write()
		l.Commit(tenant.Default, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), func(x catalog.Block) bool {
				return slices.ContainsFunc(old, func(o catalog.Block) bool { return o.ID == x.ID })
			})
			return m, nil
		})
		remove(old)
		laketest.Same(t, want, l.Exec(t.Context(), a), "through a snapshot that has the old blocks")
		if !remote { // what was fetched is kept
			require.NotZero(t, l.Counted("promlake_query_replans_total"))
		}
		remove(b)
		fresh := laketest.New(t, store, laketest.PushAll)
		var gone *query.GoneError
		var storage promql.ErrStorage
		res := fresh.Exec(t.Context(), a)
		require.ErrorAs(t, res.Err, &gone)
		require.ErrorAs(t, res.Err, &storage, "500 as upstream")
		require.ErrorIs(t, res.Err, objstore.ErrNotFound)
		require.NotZero(t, fresh.Counted("promlake_query_replans_total"))
	}
}

// TestPushedStatistics: the reads of statements are counted, in the metrics and for the request.
func TestPushedStatistics(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 50}, laketest.PushRows())
	st := &request.Stats{}
	require.NoError(t, l.Exec(request.WithStats(t.Context(), st), lastHours(`sum(rate(m1{i="1"}[5m]))`)).Err)
	got := st.Totals()
	require.Positive(t, got.RowGroups.Read)
	require.Greater(t, got.RowGroups.Considered, got.RowGroups.Read)
	require.Positive(t, got.Bytes.Read)
	require.Equal(t, float64(got.RowGroups.Read), l.Counted("promlake_query_row_groups_total", "read"))
}

// TestPushedAsOf: a pushed query as of a past time reads the samples that were visible then.
func TestPushedAsOf(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	row := func(i string) []segment.Row {
		return []segment.Row{{Labels: laketest.Metric("m", "i", i), Floats: []segment.Float{{T: laketest.Now().UnixMilli() - minute, V: 1}}}}
	}
	l.Write(tenant.Default, row("old"))
	before := laketest.Now().Add(time.Minute)
	l.Seq += 3_600_000 // an hour of segment ids
	l.Write(tenant.Default, row("late"))
	count := func(ctx context.Context) float64 {
		res := l.Exec(ctx, laketest.Query{Text: "count(m)", End: laketest.Now()})
		require.NoError(t, res.Err)
		return res.Value.(promql.Vector)[0].F
	}
	require.Equal(t, 2.0, count(t.Context()))
	require.Equal(t, 1.0, count(request.WithAsOf(t.Context(), before)))
	require.Equal(t, 2.0, l.Counted("promlake_query_subtrees_total"))
}

// TestPushedLabelIsOrdinary: queries may use the label by which the engine identifies pushed
// subtrees like any other label.
func TestPushedLabelIsOrdinary(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), laketest.PushAll)
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m", "__promlake_pushed__", "0"), Floats: []segment.Float{{T: laketest.Now().UnixMilli(), V: 7}}}})
	for text, want := range map[string]int{`{__promlake_pushed__="0"}`: 1, `{__promlake_pushed__="1"}`: 0, `sum(m) + on () {__promlake_pushed__="0"}`: 1} {
		q, err := l.Engine().NewInstantQuery(t.Context(), l, nil, text, laketest.Now())
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
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, laketest.PushRows())
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
		for _, asked := range []laketest.Query{lastHours(tc.text), {Text: tc.text, Start: laketest.Now(), End: laketest.Now()}} {
			if tc.text == `vector(1)[100y:1ms]` && asked.Step > 0 {
				continue
			}
			res := l.Exec(t.Context(), asked)
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
			_, err := l.Explain(t.Context(), query.Question{Text: tc.text, Start: asked.Start, End: asked.End, Step: asked.Step})
			require.ErrorAs(t, err, &limit, tc.text)
			require.Equal(t, tc.flag, limit.Flag, tc.text)
		}
	}
}
