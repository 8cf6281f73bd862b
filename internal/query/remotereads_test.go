package query_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// mixedRows are series with all kinds of samples, and values of all kinds.
func mixedRows(rng *rand.Rand, series int, starts bool) []segment.Row {
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.Float64frombits(value.StaleNaN), 0.1, 12.233999999999998, 1e300, -5}
	var out []segment.Row
	for i := range series {
		r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", i%3), "i", fmt.Sprint(i))}
		v := 0.0
		for j := range 20 + rng.IntN(60) {
			f := segment.Float{T: int64(j)*15_000 + rng.Int64N(3), V: v}
			if v += float64(rng.IntN(1000)) / 100; rng.IntN(10) == 0 {
				f.V = odd[rng.IntN(len(odd))]
			}
			if starts && rng.IntN(2) == 0 {
				f.ST = f.T - 5
			}
			r.Floats = append(r.Floats, f)
		}
		if i%4 == 0 {
			for j := range 30 {
				r.Hists = append(r.Hists, segment.Hist{T: int64(j) * 20_000, H: tsdbutil.GenerateTestHistogram(int64(i + j))})
			}
		}
		if i%5 == 0 {
			r.Exemplars = append(r.Exemplars, exemplar.Exemplar{Labels: labels.FromStrings("trace", fmt.Sprint(i)), Value: v, Ts: int64(i) * 1000, HasTs: true})
		}
		out = append(out, r)
	}
	return out
}

// metasOf returns the content of meta.json of all blocks, by their prefixes.
func metasOf(t *testing.T, store *laketest.Dir) map[string]*block.Meta {
	t.Helper()
	out := map[string]*block.Meta{}
	for o, err := range store.List(t.Context(), "", "") {
		require.NoError(t, err)
		prefix, ok := strings.CutSuffix(o.Key, block.MetaFile)
		if !ok {
			continue
		}
		b, err := os.ReadFile(store.LocalPath(o.Key))
		require.NoError(t, err)
		m, err := block.ReadMeta(b)
		require.NoError(t, err)
		out[prefix] = &m
	}
	return out
}

// mixedQueries are queries of mixedRows whose answers do not depend on the order of series. Some
// selectors match series with native histograms, which prevent the evaluation in SQL.
var mixedQueries = []string{
	`m0`, `m1{i!~".*[02468]"}`, `rate(m0{i="9"}[5m])`, `max by (x) (rate(m1{i=~".*[13579]"}[3m]))`, `count({__name__=~"m.",i="1"})`, `histogram_count(m0{i="12"})`,
	`m1{i="1"} - on () m2{i="5"}`, `max_over_time(m2{i="5"}[10m]) > on () m0{i="3"} or m1{i="13"}`, `count_values("v", m1{i="7"}) + on () group_left max(m0{i="9"})`,
	`max(max_over_time(m0{i="9"}[20m]))`, `min_over_time(m0{i=~".*[13579]"}[15m])`,
}

// askMixed queries all of mixedRows.
func askMixed(text string) laketest.Query {
	return laketest.Query{Text: text, Start: time.Unix(0, 0), End: time.Unix(1500, 0), Step: 30 * time.Second}
}

// answer evaluates a query and returns the answer as text.
func answer(ctx context.Context, l *laketest.Lake, a laketest.Query) (string, error) {
	q, err := l.Engine().NewRangeQuery(ctx, l, nil, a.Text, a.Start, a.End, a.Step)
	if err != nil {
		return "", err
	}
	defer q.Close() // what it answered is reused by others then
	res := q.Exec(ctx)
	return res.String(), res.Err
}

// mixedLake stores mixedRows in blocks and segments.
func mixedLake(t *testing.T, rng *rand.Rand, series int) *laketest.Dir {
	dir := laketest.NewDir(t)
	l := laketest.New(t, dir, query.Settings{})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 70, FileBytes: 3000, Rollups: true}, mixedRows(rng, series, false))
	l.Write(tenant.Default, []segment.Row{{Labels: laketest.Metric("m1", "i", "late"), Floats: []segment.Float{{T: 400_000, V: 7}}}})
	return dir
}

// TestRemoteAnswers: with any concurrent queries of a remote store, and any content of the cache,
// the answers are those of local files.
func TestRemoteAnswers(t *testing.T) {
	dir := mixedLake(t, rand.New(rand.NewPCG(9, 1)), 40)
	for _, tc := range []struct {
		name     string
		settings query.Settings
	}{
		{"kept", query.Settings{MinPushedSamples: -1}},
		{"hardly kept", query.Settings{MinPushedSamples: -1, CacheBytes: 20_000, IndexCacheBytes: 1}},
		{"not kept", query.Settings{MinPushedSamples: -1, CacheBytes: 1, IndexCacheBytes: 1}},
		{"some left to the engine", query.Settings{MinPushedSamples: 200, CacheBytes: 20_000}},
		{"all left to the engine", query.Settings{MinPushedSamples: math.MaxInt64}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			local := laketest.New(t, dir, tc.settings)
			tc.settings.CacheDir = t.TempDir()
			l := laketest.New(t, &laketest.Remote{Store: dir}, tc.settings)
			want := map[string]string{}
			for _, text := range mixedQueries {
				var err error
				want[text], err = answer(t.Context(), local, askMixed(text))
				require.NoError(t, err, text)
				require.NotEmpty(t, want[text], text)
			}
			var wg sync.WaitGroup
			for w := range uint64(3) {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(w, 1))
					for range 15 {
						text := mixedQueries[rng.IntN(len(mixedQueries))]
						if got, err := answer(t.Context(), l, askMixed(text)); err != nil || got != want[text] {
							t.Errorf("%s: %v, another answer than in place", text, err)
							return
						}
					}
				})
			}
			wg.Wait()
			require.LessOrEqual(t, len(cached(t, tc.settings.CacheDir)), 400)
		})
	}
}

// spanSource opens the files of a block through readers of spans.
type spanSource struct {
	t      *testing.T
	stage  *query.Stage
	store  *laketest.Dir
	prefix string
}

func (s spanSource) Open(name string) (io.ReaderAt, int64, error) {
	info, err := os.Stat(s.store.LocalPath(s.prefix + name))
	if err != nil {
		return nil, 0, err
	}
	r, _, end := s.stage.SpanReader(s.t.Context(), s.prefix+name, info.Size())
	s.t.Cleanup(func() { require.NoError(s.t, end()) })
	return r, info.Size(), nil
}

// TestBlocksThroughSpans reads whole blocks from a remote store through readers of spans, and
// compares them with the files themselves.
func TestBlocksThroughSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	dir := laketest.NewDir(t)
	laketest.New(t, dir, query.Settings{}).WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 200, FileBytes: 5000}, mixedRows(rng, 30, false))
	metas := metasOf(t, dir)
	require.NotEmpty(t, metas)
	read := func(store objstore.Store, prefix string) (rows []block.Row, floats block.FloatRun, hists []segment.Hist) {
		st := laketest.New(t, store, query.Settings{}).Stage
		r, err := block.Open(spanSource{t, st, dir, prefix})
		require.NoError(t, err)
		rows, err = r.Series(series.NewTable(7), nil)
		require.NoError(t, err)
		require.NoError(t, r.Floats().Next(r.Meta().Floats, &floats))
		hists, err = r.Hists().Next(r.Meta().Hists, nil)
		require.NoError(t, err)
		return rows, floats, hists
	}
	for prefix := range metas {
		rows, floats, hists := read(dir, prefix)
		remote := &laketest.Remote{Store: dir}
		gotRows, gotFloats, gotHists := read(remote, prefix)
		require.Equal(t, rows, gotRows)
		require.Equal(t, fmt.Sprint(floats), fmt.Sprint(gotFloats))
		require.Equal(t, hists, gotHists)
		require.Positive(t, remote.Gets.Load())
	}
}

// TestMetaThatCannotBe: a wrong entry for a sample file in meta.json yields an error and no answer.
func TestMetaThatCannotBe(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(f *block.File)
		want   error
	}{
		{"another size", func(f *block.File) { f.Bytes++ }, io.ErrUnexpectedEOF},
		{"another place", func(f *block.File) { f.RowGroups[1].Columns[3][0]++ }, nil},
		{"another length", func(f *block.File) { f.RowGroups[1].Columns[3][1]-- }, nil},
		{"no such column", func(f *block.File) { f.RowGroups[1].Columns = f.RowGroups[1].Columns[:3] }, nil},
		{"gone", func(f *block.File) { f.Name = "samples-0007.parquet" }, objstore.ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := laketest.NewDir(t)
			rows := laketest.PushRows()
			laketest.New(t, dir, query.Settings{}).WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 2000}, rows)
			for prefix, m := range metasOf(t, dir) {
				for i := range m.Files {
					if f := &m.Files[i]; f.Name == block.SamplesFile(0) && len(f.RowGroups) > 1 {
						tc.change(f)
					}
				}
				b, err := json.Marshal(m)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(dir.LocalPath(prefix+block.MetaFile), b, 0o644))
			}
			for _, s := range []query.Settings{laketest.PushAll, laketest.PushNone} {
				res := laketest.New(t, &laketest.Remote{Store: dir}, s).Exec(t.Context(), lastHours(`max_over_time({__name__=~"m1|m2|b"}[5m])`))
				require.Error(t, res.Err)
				require.ErrorContains(t, res.Err, "/blocks/")
				if tc.want != nil {
					require.ErrorIs(t, res.Err, tc.want)
				}
			}
		})
	}
}

// TestExplainedCost: the cost that explain reports for a query is what the query takes.
func TestExplainedCost(t *testing.T) {
	dir := mixedLake(t, rand.New(rand.NewPCG(13, 1)), 40)
	for _, min := range []int64{-1, 200, math.MaxInt64} {
		for _, text := range mixedQueries {
			remote := &laketest.Remote{Store: dir}
			l := laketest.New(t, remote, query.Settings{MinPushedSamples: min})
			for _, cold := range []bool{true, false} {
				a := askMixed(text)
				ex, err := l.Explain(t.Context(), query.Question{Text: text, Start: a.Start, End: a.End, Step: a.Step})
				require.NoError(t, err)
				before := remote.Gets.Load()
				require.NoError(t, l.Exec(t.Context(), a).Err)
				require.Equal(t, int64(ex.Cost.Gets-1), remote.Gets.Load()-before, "%s, from %d samples: requests but that for the manifest", text, min)
				require.Equal(t, cold, ex.Cost.Gets > 1, text)
				require.Positive(t, ex.Cost.Bytes, text)
			}
		}
	}
}
