package table

/*
#include "table.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Chunk is where a cursor writes rows. Columns are named by their positions in the table's columns.
// Columns that the statement does not read have no memory, and what is written to them is dropped.
type Chunk struct {
	// Rows is the number of rows, at most ChunkRows.
	Rows int

	scan   *opened
	values []any // by column of the projection: []int64, []float64, []bool, []uint32, *Lists or *Texts
	pinned runtime.Pinner
}

// of returns what there is for a column.
func of[T any](c *Chunk, column int) (one T) {
	if i := c.scan.outputs[column]; i >= 0 {
		one, _ = c.values[i].(T)
	}
	return one
}

// Numbers returns the values of a BIGINT column, or of a TIMESTAMP column in µs; nil if they are
// not read.
func (c *Chunk) Numbers(column int) []int64 { return of[[]int64](c, column) }

// Doubles returns the values of a DOUBLE column; nil if they are not read.
func (c *Chunk) Doubles(column int) []float64 { return of[[]float64](c, column) }

// Flags returns the values of a BOOLEAN column; nil if they are not read.
func (c *Chunk) Flags(column int) []bool { return of[[]bool](c, column) }

// UInts returns the values of a UINTEGER column; nil if they are not read.
func (c *Chunk) UInts(column int) []uint32 { return of[[]uint32](c, column) }

// Lists returns the values of a DOUBLE[] column; nil if they are not read, which drops what is
// set.
func (c *Chunk) Lists(column int) *Lists { return of[*Lists](c, column) }

// Texts returns the values of a VARCHAR or MAP column; nil if they are not read, which drops what
// is written.
func (c *Chunk) Texts(column int) *Texts { return of[*Texts](c, column) }

// give describes the rows for C.
func (c *Chunk) give(out *C.prom_table_chunk) {
	out.rows = C.size_t(c.Rows)
	if c.Rows == 0 {
		return
	}
	vectors := unsafe.Slice(out.vectors, len(c.scan.columns))
	for i, column := range c.scan.columns {
		v := &vectors[i]
		v._type = C.int(column.Type)
		switch x := c.values[i].(type) {
		case []int64:
			v.data = unsafe.Pointer(pin(c, x))
		case []float64:
			v.data = unsafe.Pointer(pin(c, x))
		case []bool:
			v.data = unsafe.Pointer(pin(c, x))
		case []uint32:
			v.data = unsafe.Pointer(pin(c, x))
		case *Lists:
			v.ends = (*C.uint32_t)(pin(c, x.ends))
		case *Texts:
			x.give(c, v)
		}
	}
}

// pin keeps a slice where it is until the next rows are asked for. nil if it is empty.
func pin[T any](c *Chunk, s []T) *T {
	if len(s) == 0 {
		return nil
	}
	c.pinned.Pin(&s[0])
	return &s[0]
}

// Lists are the values of a DOUBLE[] column, one for each row. A nil *Lists drops everything.
type Lists struct {
	ends []uint32
	copy func(to []float64) error
}

// Set sets the lists of all rows of the chunk; empty ones are NULL. copyTo writes their elements,
// one list after the other, to DuckDB's memory. It is called after Next has returned, if there
// are any.
func (l *Lists) Set(lists [][]float64, copyTo func(to []float64) error) {
	if l == nil {
		return
	}
	l.ends, l.copy = l.ends[:0], copyTo
	end := 0
	for _, v := range lists {
		end += len(v)
		l.ends = append(l.ends, uint32(end))
	}
}

// Texts are the values of a VARCHAR or MAP column: entries, and how many rows in a row have each.
// Without Choose, row i has entry i. A nil *Texts drops everything.
type Texts struct {
	bytes   []byte
	ends    []uint32
	mapEnds []uint32
	valid   []uint8
	nulls   bool
	repeats []uint32 // by entry: the rows that have it
}

// Add adds an entry of a VARCHAR column.
func (t *Texts) Add(s string) {
	if t != nil {
		t.add(s)
		t.valid = append(t.valid, 1)
	}
}

func (t *Texts) add(s string) {
	t.bytes = append(t.bytes, s...)
	t.ends = append(t.ends, uint32(len(t.bytes)))
}

// AddNull adds a NULL entry of a VARCHAR column.
func (t *Texts) AddNull() {
	if t != nil {
		t.add("")
		t.valid, t.nulls = append(t.valid, 0), true
	}
}

// Pair adds a pair to the entry of a MAP column that EndMap ends. Keys of an entry are distinct.
func (t *Texts) Pair(key, value string) {
	if t != nil {
		t.add(key)
		t.add(value)
	}
}

// EndMap ends an entry of a MAP column.
func (t *Texts) EndMap() {
	if t != nil {
		t.mapEnds = append(t.mapEnds, uint32(len(t.ends)/2))
		t.valid = append(t.valid, 1)
	}
}

// Choose gives the next n rows the entry that was added last.
func (t *Texts) Choose(n int) {
	if t == nil {
		return
	}
	t.pad()
	t.repeats[len(t.repeats)-1] += uint32(n)
}

// pad gives the entries that no row has chosen so far no rows.
func (t *Texts) pad() {
	t.repeats = append(t.repeats, make([]uint32, max(0, len(t.valid)-len(t.repeats)))...)
}

func (t *Texts) give(c *Chunk, v *C.prom_table_vector) {
	v.bytes = (*C.char)(unsafe.Pointer(pin(c, t.bytes)))
	v.ends = (*C.uint32_t)(pin(c, t.ends))
	v.map_ends = (*C.uint32_t)(pin(c, t.mapEnds))
	if len(t.repeats) > 0 {
		t.pad()
	}
	v.repeats = (*C.uint32_t)(pin(c, t.repeats))
	v.entries = C.size_t(len(t.valid))
	if t.nulls {
		v.valid = (*C.uint8_t)(pin(c, t.valid))
	}
}
