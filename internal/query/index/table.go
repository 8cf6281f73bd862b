// Package index holds the series tables of segments and blocks in memory, decoded column by column,
// and evaluates matchers on them. A selector costs searches in dictionaries and scans of small
// integers; label sets are built only for rows that a caller reads.
//
// Matchers are upstream's, applied to the distinct values of a label.
package index

import (
	"fmt"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Key identifies a series across objects: it is a hash of the label set under a seed that senders
// do not know. Equal label sets have equal keys. Different label sets have different keys with near
// certainty, even if a sender tries to make them collide; stored IDs do not have that property.
type Key = xxh3.Uint128

// Table is the series of one object, one row per series, in the order of the object. A table of
// some rows (see Some) knows only these, by their positions in the object. It is immutable.
type Table struct {
	names   []string // label names, sorted; __name__ is one of them
	columns []column // parallel to names

	rows    int
	some    []uint32 // the rows that the table knows, ascending; nil: all
	rowsKey string   // identifies them; empty: all

	// by row, or parallel to some
	ids    []uint64 // as stored; nil: not known
	keys   []Key    // nil: the columns have their hashes, as in segments, which soon are merged
	floats spans    // of the float samples among the object's
	hists  spans    // the same for native histograms; empty if there are none
	exs    spans    // the same for exemplars

	base int64 // ms
	// by row, or parallel to some, in ms after base: time of the first and last sample, histogram
	// or exemplar; a row without any has from > upto
	from, upto []uint32
	// the same by row of a segment in which each row has one float sample and nothing else, as after
	// a scrape; from and upto are nil then
	near []uint16

	layout *parquetfile.Layout // of the segment; nil: not known
}

// spans are the positions [from, to) that rows have among the samples of an object. Where n is set,
// each of n rows has one sample, as after a scrape.
type spans struct {
	from, to []uint64
	ends     []uint32 // in place of both, of rows whose samples follow one another, as running takes them
	n        int
}

// running returns the spans of rows whose samples follow one another. ends has an entry more than
// there are rows: where each begins, and the end of the last one.
func running(ends []uint64) spans { return spans{from: ends[:len(ends)-1], to: ends[1:]} }

// runningOf returns the spans of rows with these numbers of samples.
func runningOf(counts []int) spans {
	if !slices.ContainsFunc(counts, func(n int) bool { return n != 1 }) {
		return spans{n: len(counts)}
	}
	ends := make([]uint64, 1, len(counts)+1)
	at := uint64(0)
	for _, n := range counts {
		at += uint64(n)
		ends = append(ends, at)
	}
	return running(ends)
}

func (s *spans) of(i int) (first, n int64) {
	switch {
	case i < s.n:
		return int64(i), 1
	case s.ends != nil:
		return int64(s.ends[i]), int64(s.ends[i+1] - s.ends[i])
	case s.to == nil:
		return 0, 0
	}
	return int64(s.from[i]), int64(s.to[i] - s.from[i])
}

// total returns the number of samples of spans that follow one another.
func (s *spans) total() int64 {
	switch {
	case len(s.ends) > 0:
		return int64(s.ends[len(s.ends)-1])
	case len(s.to) == 0:
		return int64(s.n)
	}
	return int64(s.to[len(s.to)-1] - s.from[0])
}

// Rows returns the number of series that the table knows.
func (t *Table) Rows() int { return t.rows }

// Partial reports whether the table knows only some of the object's rows.
func (t *Table) Partial() bool { return t.some != nil }

// RowsKey identifies the rows that the table knows among those of the object. It is empty for all
// of them.
func (t *Table) RowsKey() string { return t.rowsKey }

// at returns the index of a row in the fields of the table.
func (t *Table) at(row int) int {
	if t.some == nil {
		return row
	}
	i, ok := slices.BinarySearch(t.some, uint32(row))
	if !ok {
		panic(fmt.Sprintf("index: row %d is not among the %d rows of the table", row, len(t.some)))
	}
	return i
}

// Names returns the label names of all series, sorted. Callers must not change it.
func (t *Table) Names() []string { return t.names }

// ID returns the stored series_id of a row. Tables of all rows of a block know it.
func (t *Table) ID(row int) (id uint64, known bool) {
	if t.ids == nil {
		return 0, false
	}
	return t.ids[t.at(row)], true
}

// Key returns the key of a row's series.
func (t *Table) Key(row int) Key {
	r := t.Keys()
	return r.Of(row)
}

// Floats returns the position of a row's float samples among the object's, which are counted over
// all of its files: n samples from first on. In a segment, only the samples of the table's rows are
// counted.
func (t *Table) Floats(row int) (first, n int64) { return t.floats.of(t.at(row)) }

// Hists returns the position of a row's native histograms, counted as float samples are.
func (t *Table) Hists(row int) (first, n int64) { return t.hists.of(t.at(row)) }

// Exemplars returns the position of a row's exemplars, counted as float samples are. A table of
// some rows has none.
func (t *Table) Exemplars(row int) (first, n int64) { return t.exs.of(t.at(row)) }

// TotalFloats returns the number of float samples of all rows. It is not for tables of some rows of
// a block.
func (t *Table) TotalFloats() int64 { return t.floats.total() }

// TotalHists returns the number of native histograms of all rows, where TotalFloats works.
func (t *Table) TotalHists() int64 { return t.hists.total() }

// TotalExemplars returns the number of exemplars of all rows, where TotalFloats works.
func (t *Table) TotalExemplars() int64 { return t.exs.total() }

// Times returns the times (ms) of the first and the last sample, histogram or exemplar of a row. If
// it has none, mint > maxt. A table of some rows leaves out exemplars.
func (t *Table) Times(row int) (mint, maxt int64) {
	i := t.at(row)
	if t.near != nil {
		at := t.base + int64(t.near[i])
		return at, at
	}
	return t.base + int64(t.from[i]), t.base + int64(t.upto[i])
}

// FloatTimes returns the times of the float samples of a segment in which each row has one and
// nothing else, as after a scrape: by row, in ms after base. near is nil if the table does not have
// them so. Callers must not change it.
func (t *Table) FloatTimes() (base int64, near []uint16) { return t.base, t.near }

// Layout returns what the footer of a segment says of its columns, nil unless the table is of some
// rows and was read by this query: a read of their samples need not read the footer again.
func (t *Table) Layout() *parquetfile.Layout { return t.layout }

// Bytes returns the approximate size of the table in memory.
func (t *Table) Bytes() int64 {
	perSpan := 8 // running spans share their memory
	if t.some != nil {
		perSpan = 16
	}
	n := int64(256 + len(t.rowsKey) + 4*len(t.some) + 8*len(t.ids) + 16*len(t.keys) + 4*len(t.from) + 2*len(t.near))
	if len(t.from) > 0 && &t.from[0] != &t.upto[0] {
		n += int64(4 * len(t.upto))
	}
	for _, s := range []*spans{&t.floats, &t.hists, &t.exs} {
		n += int64(perSpan*len(s.to) + 4*len(s.ends))
	}
	for i := range t.columns {
		n += int64(16+len(t.names[i])) + t.columns[i].bytes()
	}
	return n
}

// column returns the column of a label, nil if no series has it.
func (t *Table) column(name string) *column {
	i := sort.SearchStrings(t.names, name)
	if i == len(t.names) || t.names[i] != name {
		return nil
	}
	return &t.columns[i]
}

// KeyReader returns the keys of rows. It is fastest if rows ascend. It is not safe for concurrent
// use.
type KeyReader struct {
	table *Table
	at    [readerRuns]int // by column: the run of the row that was read last
}

// readerRuns is the number of columns of which a KeyReader remembers where it is.
const readerRuns = 16

// Keys returns a reader of the table's keys.
func (t *Table) Keys() KeyReader { return KeyReader{table: t} }

// Of returns the key of a row's series.
func (r *KeyReader) Of(row int) (sum Key) {
	t := r.table
	row = t.at(row)
	if t.keys != nil {
		return t.keys[row]
	}
	for i := range t.columns {
		c, run := &t.columns[i], 0
		at := &run
		if i < readerRuns {
			at = &r.at[i]
		}
		sum = sumOf(sum, c.hashes[c.code(uint32(row), at)])
	}
	return sum
}

// sumOf adds up the hashes of labels.
func sumOf(a, b Key) Key { return Key{Lo: a.Lo + b.Lo, Hi: a.Hi + b.Hi} }

// Reader builds the label sets of rows. It is fastest if rows ascend. It is not safe for concurrent
// use.
type Reader struct {
	table *Table
	at    []int // by column: the run of the row that was read last
	build labels.ScratchBuilder
}

// NewReader returns a reader of the table's label sets.
func (t *Table) NewReader() *Reader {
	return &Reader{table: t, at: make([]int, len(t.columns)), build: labels.NewScratchBuilder(16)}
}

// Labels returns the label set of a row.
func (r *Reader) Labels(row int) labels.Labels {
	r.build.Reset()
	row = r.table.at(row)
	for i := range r.table.columns {
		c := &r.table.columns[i]
		if v := c.dict.value(int(c.code(uint32(row), &r.at[i]))); v != "" {
			r.build.Add(r.table.names[i], v)
		}
	}
	return r.build.Labels()
}
