// Package recenttest compares segments in memory with their objects.
package recenttest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/recent"
)

// Content is what a segment holds, by the codecs of segments.
type Content struct {
	series   []string
	times    [][]int64
	values   [][]uint64
	starts   [][]int64
	hists    []string
	exemplar []segment.RowExemplars
	metadata []segment.Metadata
}

func (c *Content) row(t testing.TB, v *series.View, ref series.Ref, ts []int64, vs []float64, st []int64) {
	t.Helper()
	text := v.Metrics[v.Metric(ref)]
	for _, p := range v.Pairs(ref) {
		text += "," + v.Names[p.Name] + "=" + v.Values[p.Name][p.Value]
	}
	bits := make([]uint64, len(vs))
	for i, x := range vs {
		bits[i] = math.Float64bits(x)
	}
	c.series, c.times, c.values, c.starts = append(c.series, text), append(c.times, append([]int64{}, ts...)), append(c.values, bits), append(c.starts, append([]int64{}, st...))
}

func (c *Content) rest(t testing.TB, hs []segment.RowHists, es []segment.RowExemplars, ms []segment.Metadata) {
	t.Helper()
	for _, r := range hs {
		for _, h := range r.Samples {
			blob, err := segment.EncodeHist(h)
			require.NoError(t, err)
			c.hists = append(c.hists, string(rune(r.Row))+string(blob))
		}
	}
	c.exemplar, c.metadata = es, ms
}

// Of returns the content of a segment in memory.
func Of(t testing.TB, s *recent.Segment) (c Content) {
	t.Helper()
	from := 0
	for i, ref := range s.Rows {
		to := s.End(i)
		var st []int64
		if s.ST != nil {
			st = s.ST[from:to]
		}
		c.row(t, s.Labels.View(), ref, s.AppendTimes(nil, from, to), s.V[from:to], st)
		from = to
	}
	require.Len(t, s.V, from)
	c.rest(t, s.Hists, s.Exemplars, s.Metadata)
	return c
}

// Equal asserts that a segment in memory has the content of its object.
func Equal(t testing.TB, file []byte, s *recent.Segment) {
	t.Helper()
	require.NotNil(t, s)
	require.Equal(t, ofObject(t, file), Of(t, s))
}

func ofObject(t testing.TB, file []byte) (c Content) {
	t.Helper()
	table := series.NewTable(7)
	b, err := segment.Decode(file, table, nil)
	require.NoError(t, err)
	v, from := table.View(), 0
	for i, ref := range b.Rows {
		to := b.End[i]
		var st []int64
		if b.ST != nil {
			st = b.ST[from:to]
		}
		c.row(t, &v, ref, b.TS[from:to], b.V[from:to], st)
		from = to
	}
	c.rest(t, b.Hists, b.Exemplars, b.Metadata)
	return c
}
