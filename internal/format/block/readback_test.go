package block_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
)

// cells are the values of a row by column; those of a MAP under labels.key and labels.value.
type cells map[string][]parquet.Value

func (c cells) int(col string) int64      { return c[col][0].Int64() }
func (c cells) double(col string) float64 { return c[col][0].Double() }
func (c cells) str(col string) string     { return string(c[col][0].ByteArray()) }

// tableRows reads all files of one kind, in order, with a Parquet reader that shares no code with
// the writer.
func tableRows(t testing.TB, files *memFiles, prefix string) []cells {
	t.Helper()
	var out []cells
	for _, name := range files.names() {
		if strings.HasPrefix(name, prefix) {
			out = append(out, fileRows(t, files.closed[name])...)
		}
	}
	return out
}

func openParquet(t testing.TB, b []byte) *parquet.File {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	v, _ := f.Lookup(block.KeyVersion)
	require.Contains(t, []string{"1", "2"}, v)
	return f
}

func fileRows(t testing.TB, b []byte) []cells {
	t.Helper()
	f := openParquet(t, b)
	columns := f.Schema().Columns()
	var out []cells
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 50)
		for {
			n, err := rows.ReadRows(buf)
			for _, r := range buf[:n] {
				out = append(out, rowCells(r, columns))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, rows.Close())
	}
	require.Equal(t, f.NumRows(), int64(len(out)))
	return out
}

func rowCells(r parquet.Row, columns [][]string) cells {
	c := cells{}
	for _, v := range r {
		path := columns[v.Column()]
		if len(path) > 1 && v.DefinitionLevel() == 0 {
			continue // an empty map
		}
		name := path[0]
		if len(path) > 1 {
			name += "." + path[2]
		}
		c[name] = append(c[name], v.Clone())
	}
	return c
}

func (c cells) labels() labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set(model.MetricNameLabel, c.str(segment.ColMetric))
	for name, vs := range c {
		if n, ok := strings.CutPrefix(name, segment.LabelPrefix); ok {
			b.Set(n, string(vs[0].ByteArray()))
		}
	}
	for i, k := range c["labels.key"] {
		b.Set(string(k.ByteArray()), string(c["labels.value"][i].ByteArray()))
	}
	return b.Labels()
}

// value is the sample's value as the format defines it, by its bits.
func (c cells) value() uint64 {
	i, d := c.int(block.ColInt), c.double(block.ColDiv)
	switch {
	case math.IsNaN(d):
		return math.Float64bits(d)
	case math.IsInf(d, 1):
		return uint64(i)
	}
	return math.Float64bits(float64(i) / d)
}

// content is what one series of a block holds, values by their bits.
type content struct {
	labels    string
	floats    [][3]uint64 // ts, value, st
	hists     []string    // as EncodeHist has them
	exemplars []string
}

// read reads a whole block, and checks what ties its files together.
func read(t testing.TB, files *memFiles) []content {
	t.Helper()
	m, err := block.ReadMeta(files.closed[block.MetaFile])
	require.NoError(t, err)
	samples, hists, exemplars := tableRows(t, files, "samples-"), tableRows(t, files, "histograms-"), tableRows(t, files, "exemplars")
	require.Equal(t, []int64{m.Floats, m.Hists, m.Exemplars}, []int64{int64(len(samples)), int64(len(hists)), int64(len(exemplars))})
	var out []content
	var floatAt, histAt int64
	ids := map[int64]bool{}
	for _, s := range tableRows(t, files, block.SeriesFile) {
		id := s.int(segment.ColSeriesID)
		require.False(t, ids[id], "series_id %d twice", id)
		ids[id] = true
		require.Equal(t, [2]int64{floatAt, histAt}, [2]int64{s.int(block.ColRowStart), s.int(block.ColHistStart)})
		c := content{labels: s.labels().String()}
		minT, maxT := int64(math.MaxInt64), int64(math.MinInt64)
		take := func(rows []cells, n int64) []cells {
			for _, r := range rows[:n] {
				require.Equal(t, s.str(segment.ColMetric), r.str(segment.ColMetric))
				require.Equal(t, id, r.int(segment.ColSeriesID))
				minT, maxT = min(minT, r.int(segment.ColTS)), max(maxT, r.int(segment.ColTS))
			}
			return rows[:n]
		}
		for _, r := range take(samples[floatAt:], s.int(block.ColRowCount)) {
			st := uint64(0)
			if m.HasST {
				st = uint64(r.int(segment.ColST))
			}
			c.floats = append(c.floats, [3]uint64{uint64(r.int(segment.ColTS)), r.value(), st})
		}
		for _, r := range take(hists[histAt:], s.int(block.ColHistCount)) {
			h, err := segment.DecodeHist([]byte(r.str(segment.ColHist)))
			require.NoError(t, err)
			count, sum := h.Count()
			require.Equal(t, []uint64{math.Float64bits(count), math.Float64bits(sum)}, []uint64{math.Float64bits(r.double(block.ColCount)), math.Float64bits(r.double(block.ColSum))})
			require.Equal(t, h.T, r.int(segment.ColTS))
			c.hists = append(c.hists, r.str(segment.ColHist))
		}
		for _, r := range take(exemplars, s.int(block.ColExCount)) {
			c.exemplars = append(c.exemplars, exemplarText(r.int(segment.ColTS), r.double(segment.ColValue), r.str(segment.ColLabels)))
		}
		floatAt, histAt, exemplars = floatAt+s.int(block.ColRowCount), histAt+s.int(block.ColHistCount), exemplars[s.int(block.ColExCount):]
		require.Equal(t, [2]int64{minT, maxT}, [2]int64{s.int(block.ColMinTS), s.int(block.ColMaxTS)})
		out = append(out, c)
	}
	require.Empty(t, exemplars)
	return out
}

// expect is what a block of inputs holds, in block order.
func expect(t testing.TB, inputs []input) []content {
	t.Helper()
	_, refs, by := intern(t, slices.Clone(inputs))
	var out []content
	for _, ref := range refs {
		in := by[ref]
		c := content{labels: in.labels.String()}
		for i, ts := range in.TS {
			st := uint64(0)
			if in.ST != nil {
				st = uint64(in.ST[i])
			}
			c.floats = append(c.floats, [3]uint64{uint64(ts), math.Float64bits(in.V[i]), st})
		}
		for _, h := range in.Hists {
			b, err := segment.EncodeHist(h)
			require.NoError(t, err)
			c.hists = append(c.hists, string(b))
		}
		for _, e := range in.Exemplars {
			b, err := segment.EncodeExemplarLabels(e)
			require.NoError(t, err)
			c.exemplars = append(c.exemplars, exemplarText(e.Ts, e.Value, string(b)))
		}
		if len(c.floats)+len(c.hists)+len(c.exemplars) > 0 {
			out = append(out, c)
		}
	}
	return out
}
