package block_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// labelsAt returns a label set of a table.
func labelsAt(v *series.View, ref series.Ref) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set(model.MetricNameLabel, v.Metrics[v.Metric(ref)])
	for _, p := range v.Pairs(ref) {
		b.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	return b.Labels()
}

// readBlock reads a whole block, the samples of each series in pieces.
func readBlock(r *block.Reader, table *series.Table, piece func() int64) (out []input, err error) {
	rows, err := r.Series(table, nil)
	if err != nil {
		return nil, err
	}
	v := table.View()
	floats, hists, exemplars := r.Floats(), r.Hists(), r.Exemplars()
	for _, row := range rows {
		in := input{labels: labelsAt(&v, row.Ref)}
		var run block.FloatRun
		for left := row.Floats; left > 0; {
			n := min(left, piece())
			if err := floats.Next(n, &run); err != nil {
				return nil, err
			}
			left -= n
		}
		in.TS, in.V, in.ST = run.TS, run.V, run.ST
		if in.Hists, err = hists.Next(row.Hists, nil); err != nil {
			return nil, err
		}
		if in.Exemplars, err = exemplars.Next(row.Exemplars, nil); err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

// sameInputs compares what was written with what was read, floats by their bits.
func sameInputs(t *testing.T, want, got []input, hasST bool) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(in input) bool { return len(in.TS)+len(in.Hists)+len(in.Exemplars) == 0 })
	_, refs, by := intern(t, want)
	require.Len(t, got, len(want))
	for i, ref := range refs {
		w, g := by[ref], &got[i]
		name := w.labels.String()
		require.Equal(t, name, g.labels.String())
		require.True(t, slices.Equal(w.TS, g.TS), name)
		require.True(t, slices.EqualFunc(w.V, g.V, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }), name)
		if st := w.ST; hasST {
			if st == nil {
				st = make([]int64, len(w.TS))
			}
			require.True(t, slices.Equal(st, g.ST), name)
		} else {
			require.Nil(t, g.ST)
		}
		sameHists(t, w.Hists, g.Hists)
		require.True(t, slices.EqualFunc(w.Exemplars, g.Exemplars, exemplar.Exemplar.Equals), name)
	}
}

func sameHists(t *testing.T, want, got []segment.Hist) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		w, err := segment.EncodeHist(want[i])
		require.NoError(t, err)
		g, err := segment.EncodeHist(got[i])
		require.NoError(t, err)
		require.Equal(t, w, g)
	}
}

func TestReader(t *testing.T) {
	type file struct {
		name   string
		inputs []input
		meta   []segment.Metadata
		o      block.Options
	}
	files := []file{
		{"everything", everything(), someMetadata, block.Options{Level: key.L24h, HasST: true}},
		{"small row groups and files", everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 3, FileBytes: 1}},
		{"nothing", nil, nil, block.Options{}},
		{"metadata alone", nil, someMetadata, block.Options{}},
	}
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 21))
		o := block.Options{Level: key.Level(seed % 4), HasST: true, RowGroupRows: 1 + rng.IntN(300), FileBytes: 1 + rng.Int64N(20_000)}
		files = append(files, file{fmt.Sprint("random ", seed), randomInputs(rng, rng.IntN(60), rng.IntN(200)), nil, o})
	}
	known := series.NewTable(5)
	for i, f := range files {
		t.Run(f.name, func(t *testing.T) {
			out, m := write(t, f.inputs, f.meta, f.o, block.Header{Level: f.o.Level})
			r, err := block.Open(out)
			require.NoError(t, err)
			require.Equal(t, &m, r.Meta())
			meta, err := r.Metadata()
			require.NoError(t, err)
			require.Equal(t, f.meta, meta)
			rng := rand.New(rand.NewPCG(uint64(i), 22))
			for _, table := range []*series.Table{series.NewTable(7), known, known} {
				got, err := readBlock(r, table, func() int64 { return 1 + rng.Int64N(100) })
				require.NoError(t, err)
				sameInputs(t, f.inputs, got, f.o.HasST)
			}
		})
	}
}

// TestReaderRows holds the series table against the samples.
func TestReaderRows(t *testing.T) {
	inputs := everything()
	out, _ := write(t, inputs, nil, block.Options{HasST: true}, block.Header{})
	r, err := block.Open(out)
	require.NoError(t, err)
	table := series.NewTable(1)
	rows, err := r.Series(table, nil)
	require.NoError(t, err)
	v := table.View()
	for _, row := range rows {
		l := labelsAt(&v, row.Ref)
		in := inputs[slices.IndexFunc(inputs, func(in input) bool { return labels.Equal(in.labels, l) })]
		times := slices.Clone(in.TS)
		for _, h := range in.Hists {
			times = append(times, h.T)
		}
		for _, e := range in.Exemplars {
			times = append(times, e.Ts)
		}
		want := block.Row{
			Ref: row.Ref, Floats: int64(len(in.TS)), Hists: int64(len(in.Hists)), Exemplars: int64(len(in.Exemplars)),
			MinT: slices.Min(times), MaxT: slices.Max(times),
		}
		require.Equal(t, want, row)
	}
}

// TestReaderTellsCollisionsApart reads series whose identifiers collide.
func TestReaderTellsCollisionsApart(t *testing.T) {
	inputs := everything()
	v, refs, by := intern(t, inputs)
	for _, mask := range []uint64{0, 1, 7} {
		files := newMemFiles(t)
		w, err := block.NewWriter(files, v, block.Options{HasST: true})
		require.NoError(t, err)
		w.TruncateIDs(mask)
		_, err = fill(w, refs, by, nil, block.Header{})
		require.NoError(t, err)
		r, err := block.Open(files)
		require.NoError(t, err)
		_, err = r.Series(series.NewTable(1), nil)
		require.ErrorIs(t, err, block.ErrFormat, "identifiers that no collision explains")
		r.AllowAnyIDs()
		table := series.NewTable(1)
		for range 2 {
			got, err := readBlock(r, table, func() int64 { return math.MaxInt64 })
			require.NoError(t, err)
			sameInputs(t, inputs, got, true)
		}
	}
}

func TestCursorsSkip(t *testing.T) {
	var inputs []input
	for i := range 40 {
		in := input{labels: labelsOf(i)}
		for j := range 25 {
			at := int64(i*25 + j)
			in.TS, in.V = append(in.TS, at), append(in.V, float64(at)/8)
			in.Hists = append(in.Hists, segment.Hist{T: at, FH: everything()[2].Hists[1].FH})
			in.Exemplars = append(in.Exemplars, exemplar.Exemplar{Ts: at, HasTs: true, Value: float64(at)})
		}
		inputs = append(inputs, in)
	}
	files, _ := write(t, inputs, nil, block.Options{RowGroupRows: 90, FileBytes: 1}, block.Header{})
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 4))
		counted := &countingSource{Source: files, opened: map[string]int{}}
		r, err := block.Open(counted)
		require.NoError(t, err)
		floats, hists, exemplars := r.Floats(), r.Hists(), r.Exemplars()
		for at := int64(0); at < 1000; {
			skip := min(rng.Int64N(300), 999-at)
			half := rng.Int64N(skip + 1)
			for _, c := range []interface{ Skip(int64) }{floats, hists, exemplars} {
				c.Skip(half)
				c.Skip(skip - half)
			}
			at += skip
			var run block.FloatRun
			require.NoError(t, floats.Next(1, &run))
			require.Equal(t, block.FloatRun{TS: []int64{at}, V: []float64{float64(at) / 8}}, run)
			h, err := hists.Next(1, nil)
			require.NoError(t, err)
			require.Equal(t, at, h[0].T)
			e, err := exemplars.Next(1, nil)
			require.NoError(t, err)
			require.Equal(t, at, e[0].Ts)
			at++
		}
		require.ErrorIs(t, floats.Next(1, &block.FloatRun{}), block.ErrFormat, "behind the end")
		for name, n := range counted.opened {
			require.Equal(t, 1, n, name)
		}
	}
	counted := &countingSource{Source: files, opened: map[string]int{}}
	r, err := block.Open(counted)
	require.NoError(t, err)
	c := r.Floats()
	c.Skip(990)
	require.NoError(t, c.Next(1, &block.FloatRun{}))
	require.Len(t, counted.opened, 2, "meta.json and the last file of samples")
}

// countingSource counts how often a file is opened.
type countingSource struct {
	block.Source
	opened map[string]int
}

func (c *countingSource) Open(name string) (io.ReaderAt, int64, error) {
	c.opened[name]++
	return c.Source.Open(name)
}

// readAnything reads all of a block whose bytes may be anything.
func readAnything(src block.Source) error {
	r, err := block.Open(src)
	if err != nil {
		return err
	}
	_, err = readBlock(r, series.NewTable(1), func() int64 { return math.MaxInt64 })
	_, metaErr := r.Metadata()
	return errors.Join(err, metaErr)
}

func corrupt(files *memFiles, name string, b []byte) *memFiles {
	out := &memFiles{t: files.t, closed: maps.Clone(files.closed)}
	out.closed[name] = b
	return out
}

func TestReaderRefuses(t *testing.T) {
	files, _ := write(t, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 50}, block.Header{})
	other, _ := write(t, everything()[:4], someMetadata[:1], block.Options{HasST: true}, block.Header{})
	require.NoError(t, readAnything(files))
	for name, whole := range files.closed {
		for what, b := range map[string][]byte{
			"cut off": whole[:len(whole)-2], "empty": {}, "longer": append(slices.Clone(whole), 0), "of another block": other.closed[name],
			"overwritten": bytes.Repeat([]byte{'x'}, len(whole)),
		} {
			if name == block.MetaFile && what == "longer" {
				continue
			}
			if b == nil {
				continue
			}
			err := readAnything(corrupt(files, name, b))
			require.ErrorIs(t, err, block.ErrFormat, "%s %s", name, what)
			if name != block.MetaFile && what != "of another block" {
				require.ErrorContains(t, err, name)
			}
		}
		gone := corrupt(files, name, nil)
		delete(gone.closed, name)
		err := readAnything(gone)
		require.ErrorIs(t, err, os.ErrNotExist, name)
		require.ErrorContains(t, err, name)
	}
}

func TestReaderRefusesMeta(t *testing.T) {
	files, _ := write(t, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 50}, block.Header{})
	for _, tc := range []struct{ name, old, new string }{
		{"later version", `"version":2`, `"version":3`},
		{"more series", `"series":17`, `"series":18`},
		{"fewer samples", `"floats":251`, `"floats":250`},
		{"row group begins elsewhere", `"first_row":41`, `"first_row":40`},
		{"negative rows", `"rows":50`, `"rows":-50`},
		{"huge row group", `"rows":50`, `"rows":5000000000`},
		{"column elsewhere", `"columns":[[4,`, `"columns":[[5,`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bytes.Replace(files.closed[block.MetaFile], []byte(tc.old), []byte(tc.new), 1)
			require.NotEqual(t, string(files.closed[block.MetaFile]), string(b), "the meta.json has what the case changes")
			require.ErrorIs(t, readAnything(corrupt(files, block.MetaFile, b)), block.ErrFormat)
		})
	}
}

// TestReaderCorrupt flips bits: what was changed is refused, or changes values, but does no harm.
func TestReaderCorrupt(t *testing.T) {
	files, _ := write(t, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 50}, block.Header{})
	rng := rand.New(rand.NewPCG(1, 6))
	for _, name := range files.names() {
		for range 400 {
			b := slices.Clone(files.closed[name])
			for range 1 + rng.IntN(3) {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
			if err := readAnything(corrupt(files, name, b)); err != nil && !errors.Is(err, os.ErrNotExist) {
				require.ErrorIs(t, err, block.ErrFormat, name)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	files, _ := write(f, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 50}, block.Header{})
	names := files.names()
	for i, name := range names {
		f.Add(uint8(i), files.closed[name])
	}
	f.Fuzz(func(t *testing.T, file uint8, b []byte) {
		name := names[int(file)%len(names)]
		if err := readAnything(corrupt(files, name, b)); err != nil && !errors.Is(err, os.ErrNotExist) {
			require.ErrorIs(t, err, block.ErrFormat)
		}
	})
}

// BenchmarkFloatCursor reads all samples of a block, 720 samples a series.
func BenchmarkFloatCursor(b *testing.B) {
	for name, value := range map[string]func(rng *rand.Rand, i int) float64{
		"counter":  func(_ *rand.Rand, i int) float64 { return float64(i) },
		"decimals": func(rng *rand.Rand, _ int) float64 { return float64(rng.IntN(1e9)) / 1000 },
		"random":   func(rng *rand.Rand, _ int) float64 { return rng.Float64() },
	} {
		b.Run("values="+name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			var inputs []input
			for i := range 400 {
				in := input{labels: labelsOf(i)}
				in.TS = stamps(1_700_000_000_000, 10_000, 720)
				for j := range in.TS {
					in.V = append(in.V, value(rng, j))
				}
				inputs = append(inputs, in)
			}
			files, m := write(b, inputs, nil, block.Options{Level: key.L2h}, block.Header{})
			var run block.FloatRun
			b.ReportAllocs()
			for b.Loop() {
				r, err := block.Open(files)
				require.NoError(b, err)
				c := r.Floats()
				for left := m.Floats; left > 0; left -= 720 {
					run = block.FloatRun{TS: run.TS[:0], V: run.V[:0], ST: run.ST[:0]}
					require.NoError(b, c.Next(720, &run))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*m.Floats), "ns/sample")
		})
	}
}
