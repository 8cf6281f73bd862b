package promsql

/*
#include "vec/table.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

const (
	// maxChunkRows is how many rows a chunk of DuckDB has at most.
	maxChunkRows = 2048
	// maxChunkValues bounds the values of a chunk, unless one list alone has more.
	maxChunkValues = 1 << 15
)

// Published is rows in Go's memory that SQL sees as the table prom_rows(<ID>), with the columns i
// UINTEGER and v DOUBLE[].
type Published struct {
	id     int64
	c      *C.prom_rows
	pinned runtime.Pinner
	close  sync.Once
}

// Publish publishes rows of the ordinals i and the lists v, which must be equally many. Lists may
// have different lengths; an empty list is NULL. DuckDB reads them in place, so they must not
// change until Close, which the caller must call.
func Publish(i []uint32, v [][]float64) *Published {
	if len(i) != len(v) {
		panic(fmt.Sprintf("promsql: %d ordinals for %d lists", len(i), len(v)))
	}
	first := chunksOf(v)
	p := &Published{c: C.prom_rows_new(C.size_t(len(v)), C.size_t(len(first)-1))}
	if p.c == nil {
		panic("promsql: out of memory") // as Go does when it finds none
	}
	for chunk, row := range first {
		unsafe.Slice(p.c.first, len(first))[chunk] = C.size_t(row)
	}
	if len(i) > 0 {
		p.pinned.Pin(&i[0])
		p.c.ordinal = (*C.uint32_t)(&i[0])
	}
	lists := unsafe.Slice(p.c.lists, len(v))
	for row, list := range v {
		if len(list) > 0 {
			p.pinned.Pin(&list[0])
			lists[row] = C.prom_list{v: (*C.double)(&list[0]), n: C.size_t(len(list))}
		}
	}
	C.prom_rows_list(p.c)
	p.id = int64(p.c.id)
	return p
}

// chunksOf returns the first row of every chunk, and the end of the last one.
func chunksOf(v [][]float64) []int {
	first := []int{}
	rows, values := maxChunkRows, 0 // of a full chunk: the first row begins one
	for row, list := range v {
		if rows == maxChunkRows || values+len(list) > maxChunkValues {
			first = append(first, row)
			rows, values = 0, 0
		}
		rows++
		values += len(list)
	}
	return append(first, len(v))
}

// ID identifies the rows in SQL. It is never 0, and unique in the process.
func (p *Published) ID() int64 { return p.id }

// Close withdraws the rows: once it returns, nothing reads them. Statements that have not read all
// of them fail ("rows 7 are not there"). Close may be repeated.
func (p *Published) Close() {
	p.close.Do(func() {
		C.prom_rows_close(p.c)
		p.c = nil
		p.pinned.Unpin()
	})
}
