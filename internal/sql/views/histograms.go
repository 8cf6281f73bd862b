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
	if err != nil {
		return nil, err
	}
	if res == nil {
		return none(t.Reader), nil
	}
	s := &histogramScan{Histograms: t, ctx: ctx, res: res, mint: r.MinT, maxt: r.MaxT}
	s.series = withHists(res)
	t.Reader.Progress(func() (done, planned int64) { return s.done.Load(), int64(len(s.series)) })
	return s, nil
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
	ctx        context.Context
	res        *lookup.Resolution
	mint, maxt int64 // ms
	series     []int // with histograms
	next, done atomic.Int64
}

// Threads implements table.Scan.
func (s *histogramScan) Threads() int { return len(s.series) }

// Close implements table.Scan.
func (s *histogramScan) Close() {}

// Cursor implements table.Scan.
func (s *histogramScan) Cursor() table.Cursor { return &histogramCursor{scan: s} }

// histogramCursor holds the histograms of one series.
type histogramCursor struct {
	scan  *histogramScan
	lset  labels.Labels
	times []int64 // ms
	hists []*histogram.FloatHistogram
}

// Close implements table.Cursor.
func (c *histogramCursor) Close() {}

// Next implements table.Cursor.
func (c *histogramCursor) Next(out *table.Chunk) error {
	for out.Rows < table.ChunkRows {
		if len(c.hists) == 0 {
			more, err := c.read()
			if err != nil {
				return c.scan.Reader.Fail(err)
			}
			if !more {
				return nil
			}
			continue
		}
		n := min(len(c.hists), table.ChunkRows-out.Rows)
		times, counts, sums, texts := out.Numbers(2), out.Doubles(3), out.Doubles(4), out.Texts(5)
		for i, h := range c.hists[:n] {
			if times != nil {
				times[out.Rows+i] = c.times[i] * 1000
			}
			if counts != nil {
				counts[out.Rows+i] = h.Count
			}
			if sums != nil {
				sums[out.Rows+i] = h.Sum
			}
			if texts != nil {
				texts.Add(h.String())
			}
		}
		Flat{}.Put(out, c.lset)
		Flat{}.Repeat(out, n)
		out.Rows += n
		c.times, c.hists = c.times[n:], c.hists[n:]
	}
	return nil
}

// read reads the next series, which may have no histogram in the range.
func (c *histogramCursor) read() (more bool, err error) {
	s := c.scan
	i := int(s.next.Add(1)) - 1
	if i >= len(s.series) {
		return false, nil
	}
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	found, err := s.Store.Samples.Select(s.ctx, s.res.Match(s.series[i:i+1], s.mint, s.maxt), nil)
	if err != nil {
		return false, err
	}
	s.done.Add(1)
	c.times, c.hists = nil, nil
	for _, x := range found {
		c.lset = x.Labels()
		it := x.Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind == chunkenc.ValFloat {
				continue
			}
			if t, h := it.AtFloatHistogram(nil); !value.IsStaleNaN(h.Sum) {
				c.times, c.hists = append(c.times, t), append(c.hists, h)
			}
		}
		if err := it.Err(); err != nil {
			return false, err
		}
	}
	return true, nil
}
