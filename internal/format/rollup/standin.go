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

// standIns are the fields that the stand-ins are made of, and how.
var standIns = [...]struct {
	fields []Field
	of     func(r *Row) (t int64, v float64)
}{
	StandInMax:   {[]Field{FieldLastT, FieldMax}, func(r *Row) (int64, float64) { return r.LastT, r.Max }},
	StandInMin:   {[]Field{FieldLastT, FieldMin}, func(r *Row) (int64, float64) { return r.LastT, r.Min }},
	StandInFirst: {[]Field{FieldFirstT, FieldFirst}, func(r *Row) (int64, float64) { return r.FirstT, r.First }},
	StandInLast:  {[]Field{FieldLastT, FieldLast}, func(r *Row) (int64, float64) { return r.LastT, r.Last }},
	StandInInstant: {[]Field{FieldLastT, FieldLast, fieldStale}, func(r *Row) (int64, float64) {
		if r.Stale > 0 && r.StaleT > r.LastT {
			return r.StaleT, staleMarker
		}
		return r.LastT, r.Last
	}},
	StandInCount: {[]Field{FieldLastT}, func(r *Row) (int64, float64) { return r.LastT, float64(r.Count) }},
}

// standInColumns are the columns of every stand-in, beside those of its fields.
var standInColumns = []string{"count", "stale_ts"}

var staleMarker = math.Float64frombits(value.StaleNaN)

// Spans returns the positions of the columns of a stand-in in a row group: each [offset, length],
// in bytes.
func (c *Columns) Spans(group int, s StandIn) [][2]int64 {
	return c.spans(group, standInColumns, standIns[s].fields)
}

// spans returns the positions of the columns of some fields, and others, in a row group.
func (c *Columns) spans(group int, others []string, fields []Field) (out [][2]int64) {
	names, figures, compensation := columnsOf(others, fields)
	if compensation {
		names = append(names, sumC)
	}
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
	rows, err := r.read(group, standInColumns, standIns[s].fields, r.rows)
	if err != nil {
		return nil, nil, err
	}
	r.rows = rows
	t, v = make([]int64, len(rows)), make([]float64, len(rows))
	for i := range rows {
		if rows[i].Count == 0 {
			t[i], v[i] = rows[i].StaleT, staleMarker
		} else {
			t[i], v[i] = standIns[s].of(&rows[i])
		}
	}
	return t, v, nil
}

// read reads the columns of some fields, and others, of a row group into the memory of dst.
func (r *columnReader) read(group int, others []string, fields []Field, dst []Row) ([]Row, error) {
	n := int(r.layout.Groups[group].Rows)
	rows := slices.Grow(dst[:0], n)[:n]
	clear(rows)
	ints, figures, compensation := columnsOf(others, fields)
	for _, name := range ints {
		vals, err := r.int64s(group, name)
		if err != nil {
			return nil, err
		}
		if len(vals) != len(rows) {
			return nil, fmt.Errorf("%w: column %s has %d values for %d rows", ErrFormat, name, len(vals), len(rows))
		}
		for _, c := range intColumns {
			if c.name == name {
				for i := range rows {
					*c.of(&rows[i]) = vals[i]
				}
			}
		}
	}
	for _, name := range figures {
		if err := r.figure(group, name, rows); err != nil {
			return nil, err
		}
	}
	if compensation {
		if err := r.compensations(group, rows); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		rows[i].restore()
	}
	return rows, nil
}

// figure reads one of figures. Last is read before the others, the flags before all of them.
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
