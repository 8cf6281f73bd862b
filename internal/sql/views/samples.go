package views

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// Samples is a table with a row for each float sample: the samples of range selectors, so without
// native histograms and, unless Stale, without stale markers.
type Samples struct {
	Store  *Store
	Reader Reader
	Shape  Shape
	Stale  bool
}

// Shape is how a table shows the series, the time and the value of a sample.
type Shape interface {
	Columns() []table.Column
	// Put adds the labels of a series to the columns that hold any. The rows that Repeat is called
	// for afterwards have them.
	Put(c *table.Chunk, l labels.Labels)
	Repeat(c *table.Chunk, n int)
	// Time and Value are the positions of the columns of the time and of the value.
	Time() int
	Value() int
}

// Flat is the shape of the table samples: metric, labels, ts, value.
type Flat struct{}

var flatColumns = []table.Column{
	{Name: metricColumn, Type: table.Varchar}, {Name: labelsColumn, Type: table.Map},
	{Name: timeColumn, Type: table.Timestamp}, {Name: valueColumn, Type: table.Double},
}

// Columns implements Shape.
func (Flat) Columns() []table.Column { return flatColumns }

// Put implements Shape.
func (Flat) Put(c *table.Chunk, l labels.Labels) {
	putMetric(c.Texts(0), l)
	putLabels(c.Texts(1), l)
}

// Repeat implements Shape.
func (Flat) Repeat(c *table.Chunk, n int) {
	c.Texts(0).Choose(n)
	c.Texts(1).Choose(n)
}

// Time implements Shape.
func (Flat) Time() int { return 2 }

// Value implements Shape.
func (Flat) Value() int { return 3 }

// Columns implements table.Table.
func (t *Samples) Columns() []table.Column { return t.Shape.Columns() }

// Rows implements table.Table. The number is not known before the scan: it makes DuckDB take the
// table for a large one.
func (*Samples) Rows() int64 { return 10_000_000 }

// Open implements table.Table.
func (t *Samples) Open([]int) (table.Scan, error) {
	ctx, res, r, err := t.Store.resolve(t.Reader)
	if err != nil || res == nil {
		return none(t.Reader), err
	}
	s := &sampleScan{scan: scan{from: t.Reader, shape: t.Shape}, Samples: t, ctx: ctx, res: res, mint: r.MinT, maxt: r.MaxT}
	s.rows = func() rows { return &sampleRows{scan: s, memory: samples.TakeMemory()} }
	s.mixed = withHists(res)
	var plain []int
	for i := range res.Series {
		if _, mixed := slices.BinarySearch(s.mixed, i); !mixed {
			plain = append(plain, i)
		}
	}
	s.estimates = make([]int64, len(s.res.Series))
	total := int64(0)
	for i := range s.estimates {
		s.estimates[i] = s.res.Estimate(i, s.mint, s.maxt)
		s.planned += s.estimates[i]
	}
	for _, i := range plain {
		total += s.estimates[i]
	}
	for _, b := range s.res.Batches(plain, s.mint, s.maxt, func(i int) int64 { return s.estimates[i] }) {
		batch := make([]int, len(b))
		for i, at := range b {
			batch[i] = plain[at]
		}
		s.floats = append(s.floats, batch)
	}
	s.keep, s.threads = s.Store.Samples.Keeps(total), len(s.floats)+len(s.mixed)
	t.Reader.Progress(func() (done, planned int64) { return s.done.Load(), s.planned })
	if err := s.prefetch(); err != nil {
		return nil, t.Reader.Fail(errors.Join(err, s.ahead.Close()))
	}
	return s, nil
}

// aheadBytes is the most that a scan fetches at once. A larger scan fetches batch by batch: each
// takes many requests then, and the scan may end after a few of its rows.
const aheadBytes = 64 << 20

// sampleScan is one pass over the samples of a resolution.
type sampleScan struct {
	scan
	*Samples
	ctx        context.Context
	res        *lookup.Resolution
	mint, maxt int64   // ms
	floats     [][]int // positions of series without native histograms, by batch
	mixed      []int   // the others, which are read one by one
	keep       bool    // what is decoded: the next scan may want it
	next       atomic.Int64
	ahead      source.Fetch // what all batches read, if it was fetched at once

	estimates []int64 // samples, by position in the resolution
	planned   int64   // their sum
	done      atomic.Int64
}

// prefetch fetches what several batches read at once, so that the scan waits for the store once.
func (s *sampleScan) prefetch() error {
	if s.Store.Files.Local() || len(s.floats) < 2 {
		return nil
	}
	parts, _ := s.Store.Samples.Collect(s.res.Match(slices.Concat(s.floats...), s.mint, s.maxt)).FloatParts(s.ctx)
	s.ahead.Add(parts)
	if s.ahead.Bytes() > aheadBytes {
		return nil
	}
	return s.Store.Files.Prefetch(s.ctx, &s.ahead)
}

// Close implements table.Scan.
func (s *sampleScan) Close() {
	if err := s.ahead.Close(); err != nil {
		_ = s.Reader.Fail(err)
	}
}

// sampleRows are the samples of series, read batch by batch.
type sampleRows struct {
	scan   *sampleScan
	memory *samples.Memory

	batch *samples.Collector // nil: mixed is read
	mixed []*samples.Series
	which []int // positions in the resolution of the batch's series
	size  int   // series of either
	at    int   // the next series
	owed  int64 // estimate of the series that are given at present

	t []int64 // of the current series, ms
	v []float64
}

// Close implements rows.
func (r *sampleRows) Close() { r.memory.Release() }

// put implements rows.
func (r *sampleRows) put(c *table.Chunk, from, to int) {
	if times := c.Numbers(r.scan.Shape.Time()); times != nil {
		for i, t := range r.t[from:to] {
			times[c.Rows+i] = t * 1000
		}
	}
	if values := c.Doubles(r.scan.Shape.Value()); values != nil {
		copy(values[c.Rows:], r.v[from:to])
	}
}

// next implements rows.
func (r *sampleRows) next() (lset labels.Labels, _ int, _ error) {
	for r.t = nil; len(r.t) == 0; { // others have no samples in the range
		r.scan.done.Add(r.owed)
		r.owed = 0
		for r.at == r.size {
			if more, err := r.read(); err != nil || !more {
				return lset, 0, err
			}
		}
		i := r.at
		r.at++
		if r.batch == nil {
			lset = r.mixed[i].Labels()
			it := r.mixed[i].Iterator(nil)
			r.t, r.v = nil, nil
			for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
				if kind != chunkenc.ValFloat {
					continue
				}
				if t, v := it.At(); r.scan.Stale || !value.IsStaleNaN(v) {
					r.t, r.v = append(r.t, t), append(r.v, v)
				}
			}
			if err := errors.Join(it.Err(), r.scan.ctx.Err()); err != nil {
				return lset, 0, err
			}
			continue
		}
		r.owed = r.scan.estimates[r.which[i]]
		lset = r.scan.res.Series[r.which[i]].Labels
		t, v, facts := r.batch.Joined(i)
		r.t, r.v = t, v
		if facts&promsql.NoStale == 0 && !r.scan.Stale {
			r.withoutStale()
		}
	}
	return lset, len(r.t), nil
}

// withoutStale leaves out stale markers. It copies: batches share their samples.
func (r *sampleRows) withoutStale() {
	if !slices.ContainsFunc(r.v, value.IsStaleNaN) {
		return
	}
	t, v := make([]int64, 0, len(r.t)), make([]float64, 0, len(r.v))
	for i := range r.v {
		if !value.IsStaleNaN(r.v[i]) {
			t, v = append(t, r.t[i]), append(v, r.v[i])
		}
	}
	r.t, r.v = t, v
}

// read reads the next batch, which may have no series; more is false if there is none.
func (r *sampleRows) read() (more bool, err error) {
	s := r.scan
	r.batch, r.mixed, r.at, r.size = nil, nil, 0, 0
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	i := int(s.next.Add(1)) - 1
	if i < len(s.floats) {
		r.batch = s.Store.Samples.CollectShare(s.res.Match(s.floats[i], s.mint, s.maxt), r.memory, s.keep)
		if err := r.batch.ReadFloats(s.ctx); err != nil {
			return false, err
		}
		s.Store.Metrics.Samples.Add(float64(r.batch.Held()))
		r.which, r.size = s.floats[i], len(s.floats[i])
		return true, nil
	}
	if i -= len(s.floats); i < len(s.mixed) {
		r.mixed, err = s.Store.Samples.Select(s.ctx, s.res.Match(s.mixed[i:i+1], s.mint, s.maxt), nil)
		r.size, r.owed = len(r.mixed), s.estimates[s.mixed[i]]
		return true, err
	}
	return false, nil
}
