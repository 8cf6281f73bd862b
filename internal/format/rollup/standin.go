package rollup

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/block"
)

// StandIn is a kind of sample that replaces all samples of a bucket: a function over windows that
// each hold all of a bucket or nothing of it returns the same bits for the stand-ins as for the
// samples. In a bucket of stale markers alone, the last one is each of its stand-ins.
type StandIn int

const (
	StandInMax     StandIn = iota // the greatest, at the time of the last sample: max_over_time
	StandInMin                    // the least, at the time of the last sample: min_over_time
	StandInFirst                  // the first sample: first_over_time, ts_of_first_over_time
	StandInLast                   // the last sample: last_over_time, ts_of_last_over_time, present_over_time
	StandInInstant                // the last sample or later stale marker: instant selectors, timestamp()
	StandInCount                  // their number, at the time of the last sample: sums of it are count_over_time
)

// standIns are the columns that the stand-ins are made of, beside count, stale_ts and those that
// figures need, and how.
var standIns = [...]struct {
	ints, figures []string
	of            func(r *Row) (t int64, v float64)
}{
	StandInMax:   {[]string{"last_ts"}, []string{"first", "max"}, func(r *Row) (int64, float64) { return r.LastT, r.Max }},
	StandInMin:   {[]string{"last_ts"}, []string{"first", "min"}, func(r *Row) (int64, float64) { return r.LastT, r.Min }},
	StandInFirst: {[]string{"first_ts"}, []string{"first"}, func(r *Row) (int64, float64) { return r.FirstT, r.First }},
	StandInLast:  {[]string{"last_ts"}, []string{lastFigure}, func(r *Row) (int64, float64) { return r.LastT, r.Last }},
	StandInInstant: {[]string{"last_ts", "stale"}, []string{lastFigure}, func(r *Row) (int64, float64) {
		if r.Stale > 0 && r.StaleT > r.LastT {
			return r.StaleT, staleMarker
		}
		return r.LastT, r.Last
	}},
	StandInCount: {[]string{"last_ts"}, nil, func(r *Row) (int64, float64) { return r.LastT, float64(r.Count) }},
}

var staleMarker = math.Float64frombits(value.StaleNaN)

// columns are the names of the columns that a stand-in is made of.
func (s StandIn) columns() (ints, figures []string) {
	return withLast(append([]string{"count", "stale_ts"}, standIns[s].ints...), standIns[s].figures)
}

// Spans returns the positions of the columns of a stand-in in a row group: each [offset, length],
// in bytes.
func (c *Columns) Spans(group int, s StandIn) [][2]int64 {
	ints, figures := s.columns()
	return c.spans(group, ints, figures)
}

// spans returns the positions of some columns and figures in a row group.
func (c *Columns) spans(group int, names, figures []string) (out [][2]int64) {
	for _, f := range figures {
		names = append(names, f+"_int", f+"_div")
	}
	for _, name := range names {
		if leaf := c.layout.Column(name); leaf >= 0 {
			span := c.layout.Groups[group].Chunks[leaf].Span
			out = append(out, [2]int64{span.Offset, span.Length})
		}
	}
	return out
}

// StandIns reads the stand-ins of a row group, one per row: times (ms) and values. Errors:
// ErrFormat, and those of in.
func (c *Columns) StandIns(in io.ReaderAt, group int, s StandIn) (t []int64, v []float64, err error) {
	r := newColumnReader(in, c.layout)
	defer r.release()
	ints, figures := s.columns()
	rows, err := r.read(c, group, ints, figures, r.rows)
	if err != nil {
		return nil, nil, err
	}
	r.rows = rows
	t, v = make([]int64, len(rows)), make([]float64, len(rows))
	for i := range rows {
		if rows[i].Count == 0 {
			t[i], v[i] = rows[i].StaleT, staleMarker
			continue
		}
		rows[i].restore()
		t[i], v[i] = standIns[s].of(&rows[i])
	}
	return t, v, nil
}

// read reads intColumns and figures of a row group into the memory of dst.
func (r *columnReader) read(c *Columns, group int, ints, figures []string, dst []Row) ([]Row, error) {
	n := int(c.Rows(group))
	rows := slices.Grow(dst[:0], n)[:n]
	clear(rows)
	for _, name := range ints {
		if err := r.ints(group, name, rows); err != nil {
			return nil, err
		}
	}
	for _, name := range figures {
		if err := r.figure(group, name, rows); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// ints reads one of intColumns.
func (r *columnReader) ints(group int, name string, rows []Row) error {
	vals, err := r.int64s(group, name)
	if err != nil {
		return err
	}
	if len(vals) != len(rows) {
		return fmt.Errorf("%w: column %s has %d values for %d rows", ErrFormat, name, len(vals), len(rows))
	}
	for _, c := range intColumns {
		if c.name == name {
			for i := range rows {
				*c.of(&rows[i]) = vals[i]
			}
		}
	}
	return nil
}

// figure reads one of figures. Last is read before the others, and after what withLast adds.
func (r *columnReader) figure(group int, name string, rows []Row) error {
	whole, err := r.int64s(group, name+"_int")
	if err != nil {
		return err
	}
	if name == lastFigure {
		r.integers, r.last = r.last, whole
	}
	div, err := r.doubles(group, name+"_div")
	if err != nil {
		return err
	}
	if len(whole) != len(rows) || len(div) != len(rows) {
		return fmt.Errorf("%w: figure %s has %d and %d values for %d rows", ErrFormat, name, len(whole), len(div), len(rows))
	}
	for f := range figures {
		if figures[f].name != name {
			continue
		}
		for i := range rows {
			row := &rows[i]
			*figures[f].of(row) = block.Value(row.nearLast(f, whole[i], r.last[i]), div[i])
		}
	}
	return nil
}

// compensations reads sum_c.
func (r *columnReader) compensations(group int, rows []Row) error {
	vals, err := r.doubles(group, sumC)
	if err != nil {
		return err
	}
	if len(vals) != len(rows) {
		return fmt.Errorf("%w: column %s has %d values for %d rows", ErrFormat, sumC, len(vals), len(rows))
	}
	for i := range rows {
		rows[i].SumC = vals[i]
	}
	return nil
}
