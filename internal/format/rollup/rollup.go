// Package rollup writes and reads exact downsamples: per series and bucket of 5 minutes or 1 hour,
// the values from which range functions are answered without the samples, and those that show when
// that is impossible. schemas/rollup.md specifies the format.
//
// A bucket is the half-open range (start, start+step], as PromQL's ranges are: a range of one step
// that ends at start+step selects exactly the samples of the bucket, with the one at its end.
// Buckets are aligned to multiples of the step since the Unix epoch. Only float samples are rolled
// up; native histograms are not.
package rollup

import (
	"errors"
	"io"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/prometheus/util/kahansum"
)

// Version is the version of the format. Every file has it in its key-value metadata under
// VersionKey.
const (
	// 1: every series has rows; 2: also those of less than leastSeries samples; 3: figures are never
	// differences, and Sum does not contain SumC
	Version    = 4
	VersionKey = "promlake.rollup.version"
	StepKey    = "promlake.rollup.step_ms" // width of the file's buckets, ms
)

// ErrFormat reports bytes that are not a rollup of version 1 to 4.
var ErrFormat = errors.New("not a rollup")

// Step is the width of a bucket.
type Step struct {
	Name   string // of the file
	Millis int64
}

// Steps returns the widths of a block's rollups, the finest first.
func Steps() []Step {
	return []Step{
		{Name: "rollup-5m.parquet", Millis: (5 * time.Minute).Milliseconds()},
		{Name: "rollup-1h.parquet", Millis: time.Hour.Milliseconds()},
	}
}

// leastSamples is the least number of samples per bucket, on average, for which a series has rows.
// A row takes as many bytes as about twenty samples.
const leastSamples = 32

// leastSeries is the least number of samples for which a series has rows: fewer are read as quickly
// as the rows.
const leastSeries = 1024

// Keeps reports whether a series has rows in the rollup: it must have at least 1,024 samples, and
// at least 32 for each bucket from the first sample to the last (ms). A longer time never turns
// false into true. Files of earlier versions may have rows of other series, too.
func (s Step) Keeps(samples, first, last int64) bool {
	return samples >= leastSeries && samples >= leastSamples*((s.BucketOf(last)-s.BucketOf(first))/s.Millis+1)
}

// BucketOf returns the start (exclusive, ms) of the bucket of this width that holds timestamp t
// (ms).
func (s Step) BucketOf(t int64) int64 {
	q := (t - 1) / s.Millis
	if (t-1)%s.Millis < 0 {
		q--
	}
	return q * s.Millis
}

// EndOf returns the end (inclusive, ms) of the bucket of this width that holds timestamp t (ms).
func (s Step) EndOf(t int64) int64 { return s.BucketOf(t) + s.Millis }

// first returns the empty row of the bucket of the first of some times (ms), which ascend, and how
// many of them are in the bucket.
func (s Step) first(ts []int64) (row Row, n int) {
	row.Bucket = s.BucketOf(ts[0])
	end := row.Bucket + s.Millis
	return row, 1 + sort.Search(len(ts)-1, func(i int) bool { return ts[i+1] > end })
}

// Field is what a reader of rows asks for beside Bucket and Count, which every row has.
type Field int

// The fields. Increase and Total are made of several columns.
const (
	FieldTotal Field = iota
	FieldMin
	FieldMax
	FieldFirst
	FieldLast
	FieldFirstT
	FieldLastT
	FieldIncrease
	FieldChanges
	FieldResets
	FieldNaNs
	fieldStale
)

// fieldColumns are the columns that a field is made of, and those from which Row.Join makes it, but
// for those that figures need: see columnsOf.
var fieldColumns = [...]struct{ ints, figures []string }{
	FieldTotal:    {nil, []string{"first", "sum"}},
	FieldMin:      {nil, []string{"first", "min"}},
	FieldMax:      {nil, []string{"first", "max"}},
	FieldFirst:    {nil, []string{"first"}},
	FieldLast:     {nil, []string{lastFigure}},
	FieldFirstT:   {[]string{"first_ts"}, nil},
	FieldLastT:    {[]string{"last_ts"}, nil},
	FieldIncrease: {[]string{"resets"}, []string{"first", lastFigure, "reset_sum"}},
	FieldChanges:  {[]string{"changes"}, []string{"first", lastFigure}},
	FieldResets:   {[]string{"resets"}, []string{"first", lastFigure}},
	FieldNaNs:     {[]string{"nans"}, nil},
	fieldStale:    {[]string{"stale"}, nil},
}

// Columns that are read apart from others.
const (
	sumC       = "sum_c" // the one column of doubles that is no figure
	lastFigure = "last"  // the others may be differences from it
)

// rowColumns are the columns of every row that ReadRows reads, beside those of the fields.
var rowColumns = []string{bucketColumn, "count"}

// columnsOf are the columns of some fields and others, each once, with those from which figures are
// restored if there are other figures than Last. Last is the first of the figures.
func columnsOf(others []string, fields []Field) (ints, figures []string, compensation bool) {
	ints = slices.Clone(others)
	for _, f := range fields {
		ints, figures = append(ints, fieldColumns[f].ints...), append(figures, fieldColumns[f].figures...)
		compensation = compensation || f == FieldTotal
	}
	if slices.ContainsFunc(figures, func(name string) bool { return name != lastFigure }) {
		ints, figures = append(ints, "flags"), append(figures, lastFigure)
	}
	slices.Sort(ints)
	slices.Sort(figures)
	ints, figures = slices.Compact(ints), slices.Compact(figures)
	if i := slices.Index(figures, lastFigure); i > 0 {
		figures = slices.Insert(slices.Delete(figures, i, i+1), 0, lastFigure)
	}
	return ints, figures, compensation
}

// FieldSpans returns the positions of the columns of some fields in a row group: each [offset,
// length], in bytes.
func (c *Columns) FieldSpans(group int, fields []Field) [][2]int64 {
	return c.spans(group, rowColumns, fields)
}

// ReadRows reads the rows of a row group into the memory of dst. Of each, Bucket, Count and what
// the fields are made of are set. Errors: ErrFormat, and those of in.
func (c *Columns) ReadRows(in io.ReaderAt, group int, fields []Field, dst []Row) ([]Row, error) {
	r := newColumnReader(in, c.layout)
	defer r.release()
	return r.read(group, rowColumns, fields, dst)
}

// Rows calls visit with the row of each bucket of some samples, ascending by time (ms): what a
// rollup of this width stores of them, without the flag of start timestamps.
func (s Step) Rows(ts []int64, v []float64, visit func(*Row)) {
	for len(ts) > 0 {
		row, n := s.first(ts)
		row.add(ts[:n], v[:n], nil)
		ts, v = ts[n:], v[n:]
		visit(&row)
	}
}

// Join adds to a row the later part of its bucket, if that part is one sample or only stale
// markers: the result is bit for bit the row of all samples. It reports whether it did. Stale
// markers are not joined.
func (r *Row) Join(later *Row) bool {
	switch {
	case r.Bucket != later.Bucket || later.Count > 1:
		return false
	case later.Count == 0:
		return true
	case r.Count == 0:
		*r = *later
		return true
	}
	x := later.First
	r.compare(x)
	r.Sum, r.SumC = kahansum.Inc(x, r.Sum, r.SumC)
	r.Last, r.LastT = later.Last, later.LastT
	r.NaNs += later.NaNs
	r.Flags |= later.Flags
	r.Count++
	return true
}

// Total is sum_over_time of the bucket.
func (r *Row) Total() float64 {
	if math.IsInf(r.Sum, 0) {
		return r.Sum
	}
	return r.Sum + r.SumC
}

// Increase is by how much the samples of the bucket rose from the first to the last, corrected for
// counter resets and not extrapolated.
func (r *Row) Increase() float64 {
	if r.Resets > 0 {
		return r.Last - r.First + r.ResetSum
	}
	return r.Last - r.First
}
