package table

/*
#include <stdlib.h>
#include "table.h"
*/
import "C"

import (
	"errors"
	"log/slog"
	"runtime/cgo"
	"runtime/debug"
	"unsafe"
)

// protect turns a panic into an error, and logs it: a panic must not cross a frame of C.
func protect(message **C.char) {
	if p := recover(); p != nil {
		slog.Error("a table of SQL panicked", "panic", p, "stack", string(debug.Stack()))
		fail(message, errors.New("internal error, see the server's log"))
	}
}

func fail(message **C.char, err error) { *message = C.CString(err.Error()) }

//export promTableRelease
func promTableRelease(handle C.uintptr_t) {
	if handle == 0 {
		return
	}
	h := cgo.Handle(handle)
	if c, ok := h.Value().(interface{ Close() }); ok {
		c.Close()
	}
	h.Delete()
}

//export promTableBind
func promTableBind(function C.uintptr_t, n C.int, arguments **C.char, out *C.prom_table_bound) {
	defer protect(&out.error)
	args := make([]*string, n)
	for i, a := range unsafe.Slice(arguments, n) {
		if a != nil {
			s := C.GoString(a)
			args[i] = &s
		}
	}
	t, err := cgo.Handle(function).Value().(Function).Bind(args)
	if err != nil {
		fail(&out.error, err)
		return
	}
	columns := t.Columns()
	out.columns = (*C.prom_table_column)(C.calloc(C.size_t(len(columns)+1), C.size_t(unsafe.Sizeof(C.prom_table_column{}))))
	for i, c := range unsafe.Slice(out.columns, len(columns)) {
		c.name, c._type = C.CString(columns[i].Name), C.int(columns[i].Type)
		unsafe.Slice(out.columns, len(columns))[i] = c
	}
	out.count, out.rows = C.size_t(len(columns)), C.uint64_t(max(0, t.Rows()))
	out.table = C.uintptr_t(cgo.NewHandle(t))
}

// opened is a scan with what its cursors share.
type opened struct {
	Scan
	columns []Column // of the projection
	outputs []int    // by column of the table: its position in the projection, -1 if it is not read
}

//export promTableOpen
func promTableOpen(table C.uintptr_t, columns *C.uint64_t, n C.size_t, out *C.prom_table_opened) {
	defer protect(&out.error)
	t := cgo.Handle(table).Value().(Table)
	all := t.Columns()
	x := &opened{columns: make([]Column, n), outputs: make([]int, len(all))}
	for i := range x.outputs {
		x.outputs[i] = -1
	}
	var wanted []int
	for i, c := range unsafe.Slice(columns, n) {
		if c >= C.uint64_t(len(all)) { // the row's number, of which no one reads the value
			x.columns[i].Type = BigInt
			continue
		}
		x.columns[i], x.outputs[c] = all[c], i
		wanted = append(wanted, int(c))
	}
	var err error
	if x.Scan, err = t.Open(wanted); err != nil {
		fail(&out.error, err)
		return
	}
	out.threads, out.scan = C.uint64_t(max(1, x.Threads())), C.uintptr_t(cgo.NewHandle(x))
}

// cursor is a cursor with its chunk.
type cursor struct {
	Cursor
	chunk Chunk
}

// Close implements Cursor.
func (c *cursor) Close() {
	c.Cursor.Close()
	c.chunk.pinned.Unpin()
}

//export promTableCursor
func promTableCursor(scan C.uintptr_t) C.uintptr_t {
	x := cgo.Handle(scan).Value().(*opened)
	c := Chunk{scan: x, values: make([]any, len(x.columns))}
	for i, column := range x.columns {
		switch column.Type {
		case Double:
			c.values[i] = make([]float64, ChunkRows)
		case BigInt, Timestamp:
			c.values[i] = make([]int64, ChunkRows)
		case Boolean:
			c.values[i] = make([]bool, ChunkRows)
		case UInteger:
			c.values[i] = make([]uint32, ChunkRows)
		case Doubles:
			c.values[i] = new(Lists)
		default:
			c.values[i] = new(Texts)
		}
	}
	return C.uintptr_t(cgo.NewHandle(&cursor{x.Cursor(), c}))
}

//export promTableNext
func promTableNext(handle C.uintptr_t, out *C.prom_table_chunk) {
	defer protect(&out.error)
	c := cgo.Handle(handle).Value().(*cursor)
	// DuckDB has copied the last rows.
	c.chunk.Rows = 0
	c.chunk.pinned.Unpin()
	for _, v := range c.chunk.values {
		if t, ok := v.(*Texts); ok {
			*t = Texts{bytes: t.bytes[:0], ends: t.ends[:0], mapEnds: t.mapEnds[:0], valid: t.valid[:0], repeats: t.repeats[:0]}
		}
	}
	if err := c.Next(&c.chunk); err != nil {
		fail(&out.error, err)
		return
	}
	c.chunk.give(out)
}

//export promTableCopy
func promTableCopy(handle C.uintptr_t, column C.size_t, to *C.double, out *C.prom_table_chunk) {
	defer protect(&out.error)
	l := cgo.Handle(handle).Value().(*cursor).chunk.values[column].(*Lists)
	if n := l.ends[len(l.ends)-1]; n > 0 {
		if err := l.copy(unsafe.Slice((*float64)(to), n)); err != nil {
			fail(&out.error, err)
		}
	}
}

//export promTableReplace
func promTableReplace(handle C.uintptr_t, name *C.char, out *C.prom_table_replaced) {
	r := cgo.Handle(handle).Value().(Replacement)
	if f, argument, ok := r(C.GoString(name)); ok {
		out.function, out.argument = C.CString(f), C.CString(argument)
	}
}
