package views

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
)

// Histograms is a table with a row for each sample that is a native histogram and no stale marker:
// its count and its sum, and all of it as PromQL writes it.
type Histograms struct {
	Store  *Store
	Reader Reader
}

var histogramColumns = []table.Column{
	{Name: metricColumn, Type: table.Varchar}, {Name: labelsColumn, Type: table.Map}, {Name: timeColumn, Type: table.Timestamp},
	{Name: "count", Type: table.Double}, {Name: "sum", Type: table.Double}, {Name: "histogram", Type: table.Varchar},
}

// Columns implements table.Table.
func (*Histograms) Columns() []table.Column { return histogramColumns }

// Rows implements table.Table.
func (*Histograms) Rows() int64 { return 100_000 }

// Open implements table.Table.
func (t *Histograms) Open([]int) (table.Scan, error) {
	ctx, res, r, err := t.Store.resolve(t.Reader)
	if err != nil || res == nil {
		return none(t.Reader), err
	}
	s := &histogramScan{Histograms: t, ctx: ctx, res: res, mint: r.MinT, maxt: r.MaxT, series: withHists(res)}
	t.Reader.Progress(func() (done, planned int64) { return s.done.Load(), int64(len(s.series)) })
	return &scan{t.Reader, Flat{}, len(s.series), func() rows { return &histogramRows{scan: s} }}, nil
}

// withHists returns the series that have native histograms.
func withHists(res *lookup.Resolution) (out []int) {
	for i := range res.Series {
		if slices.ContainsFunc(res.Series[i].At, func(p lookup.Place) bool { return res.Hists(p) > 0 }) {
			out = append(out, i)
		}
	}
	return out
}

// histogramScan is one pass over the histograms of a resolution, series by series.
type histogramScan struct {
	*Histograms
	ctx         context.Context
	res         *lookup.Resolution
	mint, maxt  int64 // ms
	series      []int // with histograms
	begun, done atomic.Int64
}

// histogramRows are the histograms of series.
type histogramRows struct {
	scan  *histogramScan
	times []int64 // of the current series, ms
	hists []*histogram.FloatHistogram
}

func (*histogramRows) Close() {}

func (r *histogramRows) next() (lset labels.Labels, _ int, _ error) {
	s := r.scan
	for r.times, r.hists = nil, nil; len(r.hists) == 0; s.done.Add(1) { // others have none in the range
		i := int(s.begun.Add(1)) - 1
		if i >= len(s.series) {
			return lset, 0, nil
		}
		if err := s.ctx.Err(); err != nil {
			return lset, 0, err
		}
		found, err := s.Store.Samples.Select(s.ctx, s.res.Match(s.series[i:i+1], s.mint, s.maxt), nil)
		if err != nil {
			return lset, 0, err
		}
		for _, x := range found {
			lset = x.Labels()
			it := x.Iterator(nil)
			for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
				if kind == chunkenc.ValFloat {
					continue
				}
				if t, h := it.AtFloatHistogram(nil); !value.IsStaleNaN(h.Sum) {
					r.times, r.hists = append(r.times, t), append(r.hists, h)
				}
			}
			if err := it.Err(); err != nil {
				return lset, 0, err
			}
		}
	}
	return lset, len(r.hists), nil
}

func (r *histogramRows) put(c *table.Chunk, from, to int) {
	times, counts, sums, texts := c.Numbers(2), c.Doubles(3), c.Doubles(4), c.Texts(5)
	for i, h := range r.hists[from:to] {
		if times != nil {
			times[c.Rows+i] = r.times[from+i] * 1000
		}
		if counts != nil {
			counts[c.Rows+i] = h.Count
		}
		if sums != nil {
			sums[c.Rows+i] = h.Sum
		}
		if texts != nil {
			texts.Add(h.String())
		}
	}
}
