// Package index holds the series tables of segments and blocks in memory, decoded column by column,
// and evaluates matchers on them: a selector costs a search in dictionaries and a walk over small
// integers, and no label set is built but those that are asked for.
//
// Matchers are upstream's own, applied to the distinct values of a label.
package index

import (
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"
)

// Key tells series apart across objects: a hash of the label set under a seed that senders cannot
// know. Equal label sets have equal keys, and that two others share one is as good as impossible.
// That is not so of stored ids.
type Key = xxh3.Uint128

// Table is the series of one object, a row each, in the order of the object. It is immutable.
type Table struct {
	names   []string // of labels, sorted; __name__ among them
	columns []column // by name

	ids  []uint64 // by row: as stored
	keys []Key
	// rows+1: of the object's float samples, those of row i are [floats[i], floats[i+1])
	floats []uint64
	hists  []uint64 // likewise of native histograms; nil if there are none
	exs    []uint64 // likewise of exemplars

	base int64 // ms
	// ms after base: first and last time of a row, over all that it has; nothing at all has from
	// above upto
	from, upto []uint32
}

// Rows is the number of series.
func (t *Table) Rows() int { return len(t.ids) }

// Names are the names of labels that series have, sorted.
func (t *Table) Names() []string { return t.names }

// ID is the stored series_id of a row.
func (t *Table) ID(row int) uint64 { return t.ids[row] }

// Key is the identity of a row's series.
func (t *Table) Key(row int) Key { return t.keys[row] }

// Floats says which of the object's float samples, counted over all of its files or lists, are a
// row's: n of them from first on.
func (t *Table) Floats(row int) (first, n int64) { return place(t.floats, row) }

// Hists says which of the object's native histograms are a row's.
func (t *Table) Hists(row int) (first, n int64) { return place(t.hists, row) }

func place(ends []uint64, row int) (first, n int64) {
	if ends == nil {
		return 0, 0
	}
	return int64(ends[row]), int64(ends[row+1] - ends[row])
}

// Exemplars says which of the object's exemplars are a row's.
func (t *Table) Exemplars(row int) (first, n int64) { return place(t.exs, row) }

// TotalFloats, TotalHists and TotalExemplars are those of all rows.
func (t *Table) TotalFloats() int64 { return total(t.floats) }

// TotalHists is documented at TotalFloats.
func (t *Table) TotalHists() int64 { return total(t.hists) }

// TotalExemplars is documented at TotalFloats.
func (t *Table) TotalExemplars() int64 { return total(t.exs) }

func total(ends []uint64) int64 {
	if ends == nil {
		return 0
	}
	return int64(ends[len(ends)-1])
}

// Times returns the first and the last time (ms) of what a row has: samples, histograms and
// exemplars. Without any, the first is the later one.
func (t *Table) Times(row int) (mint, maxt int64) {
	return t.base + int64(t.from[row]), t.base + int64(t.upto[row])
}

// Bytes is the memory that the table takes, about.
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

// Reader builds the label sets of rows. It is fast if rows ascend. It belongs to one goroutine.
type Reader struct {
	table *Table
	at    []int // by column: the run of the row read last
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
