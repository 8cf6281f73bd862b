// Package index holds the series tables of segments and blocks in memory, decoded column by column,
// and evaluates matchers on them. A selector costs searches in dictionaries and scans of small
// integers; label sets are built only for rows that a caller reads.
//
// Matchers are upstream's, applied to the distinct values of a label.
package index

import (
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"
)

// Key identifies a series across objects: it is a hash of the label set under a seed that senders
// do not know. Equal label sets have equal keys. Different label sets have different keys with near
// certainty, even if a sender tries to make them collide; stored IDs do not have that property.
type Key = xxh3.Uint128

// Table is the series of one object, one row per series, in the order of the object. It is
// immutable.
type Table struct {
	names   []string // label names, sorted; __name__ is one of them
	columns []column // parallel to names

	ids  []uint64 // by row, as stored
	keys []Key
	// rows+1 entries: the float samples of row i are [floats[i], floats[i+1]) of the object's
	floats []uint64
	hists  []uint64 // the same for native histograms; nil if there are none
	exs    []uint64 // the same for exemplars

	base int64 // ms
	// by row, in ms after base: time of the first and last sample, histogram or exemplar; a row
	// without any has from > upto
	from, upto []uint32
}

// Rows returns the number of series.
func (t *Table) Rows() int { return len(t.ids) }

// Names returns the label names of all series, sorted. Callers must not change it.
func (t *Table) Names() []string { return t.names }

// ID returns the stored series_id of a row.
func (t *Table) ID(row int) uint64 { return t.ids[row] }

// Key returns the key of a row's series.
func (t *Table) Key(row int) Key { return t.keys[row] }

// Floats returns the position of a row's float samples among the object's, which are counted over
// all of its files or lists: n samples from first on.
func (t *Table) Floats(row int) (first, n int64) { return place(t.floats, row) }

// Hists returns the position of a row's native histograms among the object's.
func (t *Table) Hists(row int) (first, n int64) { return place(t.hists, row) }

func place(ends []uint64, row int) (first, n int64) {
	if ends == nil {
		return 0, 0
	}
	return int64(ends[row]), int64(ends[row+1] - ends[row])
}

// Exemplars returns the position of a row's exemplars among the object's.
func (t *Table) Exemplars(row int) (first, n int64) { return place(t.exs, row) }

// TotalFloats returns the number of float samples of all rows.
func (t *Table) TotalFloats() int64 { return total(t.floats) }

// TotalHists returns the number of native histograms of all rows.
func (t *Table) TotalHists() int64 { return total(t.hists) }

// TotalExemplars returns the number of exemplars of all rows.
func (t *Table) TotalExemplars() int64 { return total(t.exs) }

func total(ends []uint64) int64 {
	if ends == nil {
		return 0
	}
	return int64(ends[len(ends)-1])
}

// Times returns the times (ms) of the first and the last sample, histogram or exemplar of a row. If
// it has none, mint > maxt.
func (t *Table) Times(row int) (mint, maxt int64) {
	return t.base + int64(t.from[row]), t.base + int64(t.upto[row])
}

// Bytes returns the approximate size of the table in memory.
func (t *Table) Bytes() int64 {
	n := int64(256 + 8*len(t.ids) + 16*len(t.keys) + 8*len(t.floats) + 8*len(t.hists) + 8*len(t.exs) + 8*len(t.from))
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
	for i := range r.table.columns {
		c := &r.table.columns[i]
		if v := c.dict.value(int(c.code(uint32(row), &r.at[i]))); v != "" {
			r.build.Add(r.table.names[i], v)
		}
	}
	return r.build.Labels()
}
