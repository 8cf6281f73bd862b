package buckets

import (
	"fmt"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/samples"
)

// Cursor is a share of a scan. It belongs to one goroutine.
type Cursor struct {
	scan   *Scan
	memory *samples.Memory

	rows []rollup.Row // of a unit
	runs []run        // of its series
	next int          // the run that is returned next
	from int          // where its rows begin

	group decoded // that the unit reads
	later decoded // whose first rows are joined to last rows of the unit
}

// run is rows of a series: those up to end, from the end of the run before.
type run struct{ series, end int }

// Cursor returns a share of the rows. Close releases it.
func (s *Scan) Cursor() *Cursor { return &Cursor{scan: s, memory: samples.TakeMemory()} }

// Close frees what the cursor holds.
func (c *Cursor) Close() { c.memory.Release() }

// Next returns rows of a series: a part of them, at least one; none at the end. They are valid
// until the next call.
func (c *Cursor) Next() (x *lookup.ResolvedSeries, rows []rollup.Row, err error) {
	for c.next == len(c.runs) {
		if err := c.scan.ctx.Err(); err != nil {
			return nil, nil, err
		}
		c.rows, c.runs, c.next, c.from = c.rows[:0], c.runs[:0], 0, 0
		i := int(c.scan.next.Add(1)) - 1
		if i >= c.scan.Units() {
			return nil, nil, nil
		}
		if err := c.read(i); err != nil {
			return nil, nil, err
		}
		c.scan.read.Add(1)
	}
	r := c.runs[c.next]
	rows = c.rows[c.from:r.end]
	c.next, c.from = c.next+1, r.end
	return &c.scan.res.Series[r.series], rows, nil
}

// read reads a unit, which may have no rows.
func (c *Cursor) read(unit int) error {
	s := c.scan
	if unit < len(s.groups) {
		err := c.stored(&s.groups[unit])
		s.stored.Add(int64(len(c.rows)))
		return err
	}
	var err error
	if unit -= len(s.groups); unit < len(s.computed) {
		err = c.compute(&s.computed[unit])
	} else {
		err = c.computeMixed(s.hists[unit-len(s.computed)])
	}
	s.fromSamples.Add(int64(len(c.rows)))
	return err
}

// end ends the run of a series, if it has rows.
func (c *Cursor) end(series int) {
	from := 0
	if n := len(c.runs); n > 0 {
		from = c.runs[n-1].end
	}
	if from < len(c.rows) {
		c.runs = append(c.runs, run{series, len(c.rows)})
	}
}

// add adds a row if it has samples beside stale markers.
func (c *Cursor) add(r *rollup.Row) {
	if r.Count > 0 {
		c.rows = append(c.rows, *r)
	}
}

// compute reads the samples of a batch.
func (c *Cursor) compute(b *batch) error {
	s := c.scan
	got := s.reader.Samples.CollectShare(s.res.Match(b.series, b.from+1, b.to), c.memory, false)
	if err := got.ReadFloats(s.ctx); err != nil {
		return err
	}
	s.reader.Metrics.Samples.Add(float64(got.Held()))
	for i, series := range b.series {
		t, v, _ := got.Joined(i)
		s.step.Rows(t, v, c.add)
		c.end(series)
	}
	return nil
}

// computeMixed reads the floats of a series that has native histograms as well.
func (c *Cursor) computeMixed(series int) error {
	s := c.scan
	found, err := s.reader.Samples.Select(s.ctx, s.res.Match([]int{series}, s.all.from+1, s.all.to), nil)
	if err != nil {
		return err
	}
	var t []int64
	var v []float64
	for _, x := range found {
		it := x.Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if kind == chunkenc.ValFloat {
				at, value := it.At()
				t, v = append(t, at), append(v, value)
			}
		}
		if err := it.Err(); err != nil {
			return fmt.Errorf("read %s: %w", x.Labels(), err)
		}
	}
	s.step.Rows(t, v, c.add)
	c.end(series)
	return nil
}
