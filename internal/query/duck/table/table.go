// Package table makes tables whose rows Go supplies, chunk by chunk, readable in SQL.
//
// DuckDB's threads call a scan's cursors. Tables know which columns a statement reads; they are not
// told its conditions (DuckDB's C API has no way to), which DuckDB applies to their rows.
package table

/*
#cgo CFLAGS: -O2 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#include <stdlib.h>
#include "table.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"

	_ "github.com/promlake/promlake/third_party/duckdb"
)

// Type is the type of a column.
type Type int

// The types of columns: VARCHAR, DOUBLE, BIGINT, TIMESTAMP WITH TIME ZONE (µs), MAP(VARCHAR,
// VARCHAR), BOOLEAN, UINTEGER, DOUBLE[].
const (
	Varchar Type = iota
	Double
	BigInt
	Timestamp
	Map
	Boolean
	UInteger
	Doubles
)

// ChunkRows is the number of rows that a chunk may have.
const ChunkRows = C.PROM_CHUNK_ROWS

// Column is a column of a table.
type Column struct {
	Name string // unique in the table, whatever its case is
	Type Type
}

// Table is a table of one statement.
type Table interface {
	Columns() []Column
	// Rows estimates the number of rows.
	Rows() int64
	// Open begins a scan of some columns, which are positions in Columns.
	Open(columns []int) (Scan, error)
}

// Scan is one pass over a table's rows by several threads. It is safe for concurrent use.
type Scan interface {
	// Threads is the number of cursors that are useful, at least 1.
	Threads() int
	// Cursor returns a share of the rows: each row is given by one cursor only.
	Cursor() Cursor
	// Close ends the scan after its cursors.
	Close()
}

// Cursor is a share of a scan's rows. It belongs to one thread.
type Cursor interface {
	// Next writes the next rows. A chunk without rows is the end.
	Next(*Chunk) error
	Close()
}

// Function is a table function. It gets its arguments, which may have any type, as texts; nil is
// NULL.
type Function struct {
	Name       string
	Parameters int
	// Bind returns the table for arguments. It is called each time a statement is planned.
	Bind func(arguments []*string) (Table, error)
}

// Register adds a function to the database of conn, which keeps it until the database is closed.
func Register(conn mapping.Connection, f Function) error {
	name := C.CString(f.Name)
	defer C.free(unsafe.Pointer(name))
	if C.prom_table_register(C.duckdb_connection(conn.Ptr), name, C.int(f.Parameters), C.uintptr_t(cgo.NewHandle(f))) != 0 {
		return fmt.Errorf("DuckDB refused the table function %s", f.Name)
	}
	return nil
}

// RegisterLookup makes the database of conn evaluate labels['x'] once for rows that share a map.
func RegisterLookup(conn mapping.Connection) error {
	if C.prom_table_register_lookup(C.duckdb_connection(conn.Ptr)) != 0 {
		return errors.New("DuckDB refused the function for labels of a map")
	}
	return nil
}

// Replacement returns the function, and its argument, that a statement calls where it names a table
// that does not exist; ok is false if there is none of that name.
type Replacement func(name string) (function, argument string, ok bool)

// Replace makes a database ask r for unknown names. The database keeps it until it is closed.
func Replace(db mapping.Database, r Replacement) {
	C.prom_table_replace(C.duckdb_database(db.Ptr), C.uintptr_t(cgo.NewHandle(r)))
}
