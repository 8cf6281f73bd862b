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
	if err != nil {
		return nil, err
	}
	if res == nil {
		return none(t.Reader), nil
	}
	s := &sampleScan{Samples: t, ctx: ctx, res: res, mint: r.MinT, maxt: r.MaxT}
	var plain []int
	for i := range s.res.Series {
		hists := false
		for _, p := range s.res.Series[i].At {
			hists = hists || s.res.Hists(p) > 0
		}
		if hists {
			s.mixed = append(s.mixed, i)
		} else {
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
	s.keep = s.Store.Samples.Keeps(total)
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

// Threads implements table.Scan.
func (s *sampleScan) Threads() int { return len(s.floats) + len(s.mixed) }

// Close implements table.Scan.
func (s *sampleScan) Close() {
	if err := s.ahead.Close(); err != nil {
		_ = s.Reader.Fail(err)
	}
}

// Cursor implements table.Scan.
func (s *sampleScan) Cursor() table.Cursor {
	return &sampleCursor{scan: s, memory: samples.TakeMemory()}
}

// sampleCursor reads batch after batch.
type sampleCursor struct {
	scan   *sampleScan
	memory *samples.Memory

	batch *samples.Collector // nil: mixed is read
	mixed []*samples.Series
	which []int // positions in the resolution of the batch's series
	size  int   // series of either
	at    int   // the next series
	owed  int64 // estimate of the series that are given at present

	lset labels.Labels // of the current series
	t    []int64       // its samples that are left, ms
	v    []float64
}

// Close implements table.Cursor.
func (c *sampleCursor) Close() { c.memory.Release() }

// Next implements table.Cursor.
func (c *sampleCursor) Next(out *table.Chunk) error {
	for out.Rows < table.ChunkRows {
		if len(c.t) == 0 {
			more, err := c.series()
			if err != nil {
				return c.scan.Reader.Fail(err)
			}
			if !more {
				return nil
			}
			continue
		}
		if apart(out, len(c.t)) {
			return nil
		}
		shape, n := c.scan.Shape, min(len(c.t), table.ChunkRows-out.Rows)
		times, values := out.Numbers(shape.Time()), out.Doubles(shape.Value())
		if times != nil {
			for i, t := range c.t[:n] {
				times[out.Rows+i] = t * 1000
			}
		}
		if values != nil {
			copy(values[out.Rows:], c.v[:n])
		}
		shape.Put(out, c.lset)
		shape.Repeat(out, n)
		out.Rows += n
		c.t, c.v = c.t[n:], c.v[n:]
	}
	return nil
}

// series goes on to the next series, which may have no samples; more is false if there is none.
func (c *sampleCursor) series() (more bool, err error) {
	c.scan.done.Add(c.owed)
	c.owed = 0
	for c.at == c.size {
		if more, err = c.read(); err != nil || !more {
			return false, err
		}
	}
	i := c.at
	c.at++
	if c.batch == nil {
		c.lset = c.mixed[i].Labels()
		it := c.mixed[i].Iterator(nil)
		c.t, c.v = nil, nil
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind != chunkenc.ValFloat {
				continue
			}
			if t, v := it.At(); c.scan.Stale || !value.IsStaleNaN(v) {
				c.t, c.v = append(c.t, t), append(c.v, v)
			}
		}
		return true, errors.Join(it.Err(), c.scan.ctx.Err())
	}
	c.owed = c.scan.estimates[c.which[i]]
	c.lset = c.scan.res.Series[c.which[i]].Labels
	t, v, facts := c.batch.Joined(i)
	c.t, c.v = t, v
	if facts&promsql.NoStale == 0 && !c.scan.Stale {
		c.withoutStale()
	}
	return true, nil
}

// withoutStale leaves out stale markers. It copies: batches share their samples.
func (c *sampleCursor) withoutStale() {
	stale := false
	for _, v := range c.v {
		if value.IsStaleNaN(v) {
			stale = true
			break
		}
	}
	if !stale {
		return
	}
	t, v := make([]int64, 0, len(c.t)), make([]float64, 0, len(c.v))
	for i := range c.v {
		if !value.IsStaleNaN(c.v[i]) {
			t, v = append(t, c.t[i]), append(v, c.v[i])
		}
	}
	c.t, c.v = t, v
}

// read reads the next batch, which may have no series; more is false if there is none.
func (c *sampleCursor) read() (more bool, err error) {
	s := c.scan
	c.batch, c.mixed, c.at, c.size = nil, nil, 0, 0
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	i := int(s.next.Add(1)) - 1
	if i < len(s.floats) {
		c.batch = s.Store.Samples.CollectShare(s.res.Match(s.floats[i], s.mint, s.maxt), c.memory, s.keep)
		if err := c.batch.ReadFloats(s.ctx); err != nil {
			return false, err
		}
		s.Store.Metrics.Samples.Add(float64(c.batch.Held()))
		c.which, c.size = s.floats[i], len(s.floats[i])
		return true, nil
	}
	if i -= len(s.floats); i < len(s.mixed) {
		c.mixed, err = s.Store.Samples.Select(s.ctx, s.res.Match(s.mixed[i:i+1], s.mint, s.maxt), nil)
		c.size, c.owed = len(c.mixed), s.estimates[s.mixed[i]]
		return true, err
	}
	return false, nil
}
