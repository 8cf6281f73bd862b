package query_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
	"github.com/promlake/promlake/internal/tenant"
)

// mixedRows are series with all kinds of samples, and values of all kinds.
func mixedRows(rng *rand.Rand, series int, starts bool) []segment.Row {
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.Float64frombits(value.StaleNaN), 0.1, 12.233999999999998, 1e300, -5}
	var out []segment.Row
	for i := range series {
		r := segment.Row{Labels: metric(fmt.Sprintf("m%d", i%3), "i", fmt.Sprint(i))}
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

// remoteFile is a file of a block in a store that seems remote.
type remoteFile struct {
	key, path string
	*block.File
	columns []string
}

// filesOfBlocks returns the files of all blocks whose columns can be read one by one.
func filesOfBlocks(t *testing.T, store *dirStore) (files []remoteFile, metas map[string]*block.Meta) {
	t.Helper()
	metas = map[string]*block.Meta{}
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
		metas[prefix] = &m
		for i := range m.Files {
			f := remoteFile{key: prefix + m.Files[i].Name, path: store.LocalPath(prefix + m.Files[i].Name), File: &m.Files[i]}
			elements, err := f.Schema()
			if f.Name == block.SeriesFile {
				require.ErrorIs(t, err, block.ErrFormat)
				continue
			}
			require.NoError(t, err)
			for _, e := range elements[1:] {
				f.columns = append(f.columns, e.Name)
			}
			files = append(files, f)
		}
	}
	return files, metas
}

func shuffled(rng *rand.Rand, columns []string) []string {
	columns = slices.Clone(columns)
	rng.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	return columns[:1+rng.IntN(len(columns))]
}

// someGroups returns a random choice of a file's row groups, ascending.
func someGroups(rng *rand.Rand, f *block.File) []int {
	keep := rng.IntN(4) // of four
	var out []int
	for g := range f.RowGroups {
		if rng.IntN(4) <= keep {
			out = append(out, g)
		}
	}
	if len(out) == 0 {
		out = append(out, rng.IntN(len(f.RowGroups)))
	}
	return out
}

// selection is SQL for some rows of a file as text, to the bit, in order.
func selection(path string, columns []string, from []int64, n []int64, where string) string {
	var cols, rows []string
	for _, c := range columns {
		switch c {
		case block.ColInt, segment.ColSeriesID:
			c += "::VARCHAR"
		case segment.ColTS, segment.ColST:
			c = "epoch_us(" + c + ")::VARCHAR"
		case "metric":
		default:
			c = "hex(" + c + "::VARCHAR)"
			if strings.HasPrefix(c, "hex(h:") {
				c = "hex(h)"
			}
		}
		cols = append(cols, c)
	}
	for i := range from {
		rows = append(rows, fmt.Sprintf("file_row_number BETWEEN %d AND %d", from[i], from[i]+n[i]-1))
	}
	return fmt.Sprintf("SELECT %s FROM read_parquet('%s') WHERE (%s)%s ORDER BY file_row_number", strings.Join(cols, ", "), path, strings.Join(rows, " OR "), where)
}

// TestRowsOfRemoteFiles: whichever columns and row groups are fetched, and whatever was before, SQL answers from the local file as from the
// original, and so does another Parquet reader.
func TestRowsOfRemoteFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	dir := newDirStore(t)
	for _, starts := range []bool{false, true} {
		id := map[bool]string{false: tenant.Default, true: "starts"}[starts]
		newLake(t, dir, query.Settings{}).writeBlocks(id, blockShape{level: key.L24h, groupRows: 70, fileBytes: 3000}, mixedRows(rng, 40, starts))
	}
	files, _ := filesOfBlocks(t, dir)
	require.Greater(t, len(files), 8)
	for _, tc := range []struct {
		name   string
		budget int64
	}{{"kept", 1 << 30}, {"hardly kept", 20_000}, {"not kept", 1}} {
		t.Run(tc.name, func(t *testing.T) {
			cache := t.TempDir()
			st := newLake(t, &remoteStore{Store: dir}, query.Settings{CacheDir: cache, CacheBytes: tc.budget}).Stage
			var wg sync.WaitGroup
			for range 3 {
				rng := rand.New(rand.NewPCG(rng.Uint64(), 1))
				wg.Go(func() {
					for range 40 {
						f := files[rng.IntN(len(files))]
						groups, columns := someGroups(rng, f.File), shuffled(rng, f.columns)
						path, at, release, err := st.OpenRows(t.Context(), f.key, f.File, groups, columns)
						if err != nil {
							t.Error(err)
							return
						}
						ok := sameRows(t, st, &f, path, at, groups, columns, rng)
						release()
						if !ok {
							return
						}
					}
				})
			}
			wg.Wait()
			require.LessOrEqual(t, len(cached(t, cache)), 400)
		})
	}
}

// sameRows says whether SQL finds the same in the local file as in the original.
func sameRows(t *testing.T, st *query.Stage, f *remoteFile, path string, at []int64, groups []int, columns []string, rng *rand.Rand) bool {
	var from, n []int64
	for _, g := range groups {
		from = append(from, f.RowGroups[g].FirstRow-f.RowGroups[0].FirstRow)
		n = append(n, f.RowGroups[g].Rows)
	}
	where := ""
	if slices.Contains(columns, segment.ColTS) && rng.IntN(2) == 0 {
		lo := rng.Int64N(900_000)
		where = fmt.Sprintf(" AND ts BETWEEN make_timestamptz(%d) AND make_timestamptz(%d)", lo*1000, (lo+rng.Int64N(300_000))*1000)
	}
	got, gerr := st.Texts(t.Context(), selection(path, columns, at, n, where), len(columns))
	want, werr := st.Texts(t.Context(), selection(f.path, columns, from, n, where), len(columns))
	if gerr != nil || werr != nil {
		t.Error(gerr, werr)
		return false
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("%s, row groups %v, columns %v: the local file answers otherwise", f.Name, groups, columns)
		return false
	}
	return true
}

// TestRowFilesAreParquet reads what is made local with a reader that shares no code with the writer, and finds nothing else in it.
func TestRowFilesAreParquet(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 1))
	dir := newDirStore(t)
	newLake(t, dir, query.Settings{}).writeBlocks(tenant.Default, blockShape{level: key.L12h, groupRows: 100, fileBytes: 1 << 20}, mixedRows(rng, 30, true))
	files, _ := filesOfBlocks(t, dir)
	for _, f := range files {
		groups, columns := someGroups(rng, f.File), shuffled(rng, f.columns)
		st := newLake(t, &remoteStore{Store: dir}, query.Settings{}).Stage
		path, _, release, err := st.OpenRows(t.Context(), f.key, f.File, groups, columns)
		require.NoError(t, err)
		local, err := os.ReadFile(path)
		require.NoError(t, err)
		release()
		original, err := os.ReadFile(f.path)
		require.NoError(t, err)
		got, want := parquetValues(t, local, columns), parquetValues(t, original, columns)
		require.Len(t, got, len(groups))
		for i, g := range groups {
			require.Equal(t, want[g], got[i], "row group %d of %s", g, f.Name)
		}
		p, err := parquet.OpenFile(bytes.NewReader(local), int64(len(local)))
		require.NoError(t, err)
		require.Len(t, p.Schema().Columns(), len(columns))
		v, _ := p.Lookup(block.KeyVersion)
		require.Equal(t, "1", v)
	}
}

// parquetValues returns the values of columns by row group, and then column.
func parquetValues(t *testing.T, b []byte, columns []string) [][][]string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	var out [][][]string
	for _, g := range f.RowGroups() {
		var cols [][]string
		for _, c := range columns {
			leaf, ok := f.Schema().Lookup(c)
			require.True(t, ok, c)
			pages := g.ColumnChunks()[leaf.ColumnIndex].Pages()
			var vals []string
			for {
				p, err := pages.ReadPage()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				buf := make([]parquet.Value, p.NumValues())
				n, err := p.Values().ReadValues(buf)
				if err != io.EOF {
					require.NoError(t, err)
				}
				for _, v := range buf[:n] {
					vals = append(vals, string(v.AppendBytes(nil)))
				}
			}
			require.NoError(t, pages.Close())
			cols = append(cols, vals)
		}
		out = append(out, cols)
	}
	return out
}

// spanSource opens the files of a block through readers of spans.
type spanSource struct {
	t      *testing.T
	stage  *query.Stage
	store  *dirStore
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

// TestBlocksThroughSpans reads whole blocks from a remote store through readers of spans, as from the files themselves.
func TestBlocksThroughSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	dir := newDirStore(t)
	newLake(t, dir, query.Settings{}).writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 200, fileBytes: 5000}, mixedRows(rng, 30, false))
	_, metas := filesOfBlocks(t, dir)
	require.NotEmpty(t, metas)
	read := func(store objstore.Store, prefix string) (rows []block.Row, floats block.FloatRun, hists []segment.Hist) {
		st := newLake(t, store, query.Settings{}).Stage
		r, err := block.Open(spanSource{t, st, dir, prefix})
		require.NoError(t, err)
		rows, err = r.Series(series.NewTable(7))
		require.NoError(t, err)
		require.NoError(t, r.Floats().Next(r.Meta().Floats, &floats))
		hists, err = r.Hists().Next(r.Meta().Hists, nil)
		require.NoError(t, err)
		return rows, floats, hists
	}
	for prefix := range metas {
		rows, floats, hists := read(dir, prefix)
		remote := &remoteStore{Store: dir}
		gotRows, gotFloats, gotHists := read(remote, prefix)
		require.Equal(t, rows, gotRows)
		require.Equal(t, fmt.Sprint(floats), fmt.Sprint(gotFloats))
		require.Equal(t, hists, gotHists)
		require.Positive(t, remote.gets.Load())
	}
}

// TestRowsThatCannotBe: what meta.json does not say, or says wrongly, is an error and no answer.
func TestRowsThatCannotBe(t *testing.T) {
	dir := newDirStore(t)
	newLake(t, dir, query.Settings{}).writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 200}, mixedRows(rand.New(rand.NewPCG(12, 1)), 30, false))
	files, metas := filesOfBlocks(t, dir)
	i := slices.IndexFunc(files, func(f remoteFile) bool { return f.Name == block.SamplesFile(0) })
	good := files[i]
	change := func(fn func(*remoteFile)) remoteFile {
		f, g := good, *good.File
		g.RowGroups = slices.Clone(g.RowGroups)
		g.RowGroups[1].Columns = slices.Clone(g.RowGroups[1].Columns)
		f.File = &g
		fn(&f)
		return f
	}
	var seriesFile *block.File
	for _, m := range metas {
		seriesFile = &m.Files[slices.IndexFunc(m.Files, func(f block.File) bool { return f.Name == block.SeriesFile })]
	}
	st := newLake(t, &remoteStore{Store: dir}, query.Settings{}).Stage
	for _, tc := range []struct {
		name    string
		file    remoteFile
		columns []string
		want    error
	}{
		{"no such column", good, []string{"ts", "nonsense"}, block.ErrFormat},
		{"a column that the file does not have", good, []string{segment.ColST}, block.ErrFormat},
		{"a file of other columns", change(func(f *remoteFile) { f.File = seriesFile }), []string{"metric"}, block.ErrFormat},
		{"gone", change(func(f *remoteFile) { f.key += "x" }), []string{"ts"}, objstore.ErrNotFound},
		{"another size", change(func(f *remoteFile) { f.Bytes++ }), []string{"ts"}, io.ErrUnexpectedEOF},
		{"another place", change(func(f *remoteFile) { f.RowGroups[1].Columns[2][0]++ }), []string{"ts"}, nil},
		{"another length", change(func(f *remoteFile) { f.RowGroups[1].Columns[2][1]-- }), []string{"ts"}, nil},
		{"another number of rows", change(func(f *remoteFile) { f.RowGroups[1].Rows-- }), []string{"ts"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, _, err := st.OpenRows(t.Context(), tc.file.key, tc.file.File, []int{1}, tc.columns)
			require.Error(t, err)
			require.ErrorContains(t, err, tc.file.key)
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
			}
		})
	}
	_, _, release, err := st.OpenRows(t.Context(), good.key, good.File, []int{1}, []string{"ts"})
	require.NoError(t, err)
	release()
}

// TestCost: what a read is said to cost is what it takes.
func TestCost(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	dir := newDirStore(t)
	newLake(t, dir, query.Settings{}).writeBlocks(tenant.Default, blockShape{level: key.L24h, groupRows: 70, fileBytes: 3000}, mixedRows(rng, 40, false))
	files, _ := filesOfBlocks(t, dir)
	remote := &remoteStore{Store: dir}
	st := newLake(t, remote, query.Settings{}).Stage
	for range 60 {
		f := files[rng.IntN(len(files))]
		groups, columns := someGroups(rng, f.File), shuffled(rng, f.columns)
		gets, size, err := st.Cost(f.key, f.File, groups, columns)
		require.NoError(t, err)
		require.Equal(t, gets == 0, size == 0)
		before := remote.gets.Load()
		_, _, release, err := st.OpenRows(t.Context(), f.key, f.File, groups, columns)
		require.NoError(t, err)
		release()
		require.Equal(t, int64(gets), remote.gets.Load()-before)
	}
}
