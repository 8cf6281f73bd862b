// Package promsql gives a DuckDB database the SQL functions of PromQL, written in C: functions over
// lists with one value per step of a grid, and aggregates over the samples of a series. Its
// sub-packages hold the C code; this package is the Go side.
//
// In a list of values a step without a sample is Prometheus's stale marker. Parameters are a
// constant spec text of key=value pairs (see kernel/spec.h). DuckDB's memory limit does not cover
// the functions: their memory is counted against the Budget that the spec names.
//
// The engine reads samples in Go and evaluates them with a Kernel, series by series; Publish makes
// the resulting lists available to SQL as the table prom_rows(id).
package promsql

/*
#cgo CFLAGS: -DDUCKDB_STATIC_BUILD
#include <stdlib.h>

#include "agg/register.h"
#include "agg/windows.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	_ "github.com/duckdb/duckdb-go-bindings" // links DuckDB
	"github.com/duckdb/duckdb-go/v2/mapping"

	_ "github.com/promlake/promlake/internal/query/duck/promsql/agg"
	_ "github.com/promlake/promlake/internal/query/duck/promsql/kernel"
	_ "github.com/promlake/promlake/internal/query/duck/promsql/vec"
	"github.com/promlake/promlake/internal/query/duck/table"
)

// Register adds the functions to the database of conn. DuckDB refuses to add them twice to one
// database.
func Register(conn mapping.Connection) error {
	msg := (*C.char)(C.calloc(1, C.PROM_ERROR_BYTES))
	defer C.free(unsafe.Pointer(msg))
	db := C.duckdb_connection(conn.Ptr)
	if C.prom_register_vec(db, C.vec_text{}, 0, msg) != 0 || C.prom_register_agg(db, C.vec_text{}, 0, msg) != 0 {
		return fmt.Errorf("register functions: %s", C.GoString(msg))
	}
	return table.Register(conn, rowsFunction)
}

// RegisterLists adds to the database of conn some of the functions over lists of values
// ("prom_binary"). The budget counts their memory until the database is closed.
func RegisterLists(conn mapping.Connection, budget *Budget, functions []string) error {
	msg := (*C.char)(C.calloc(1, C.PROM_ERROR_BYTES))
	defer C.free(unsafe.Pointer(msg))
	for _, f := range functions {
		name := C.CString(f)
		defer C.free(unsafe.Pointer(name))
		db, only, id := C.duckdb_connection(conn.Ptr), C.vec_text{text: name, len: C.size_t(len(f))}, C.int64_t(budget.ID())
		if C.prom_register_vec(db, only, id, msg) != 0 || C.prom_register_agg(db, only, id, msg) != 0 {
			return fmt.Errorf("register functions: %s", C.GoString(msg))
		}
	}
	return nil
}

// RegisterWindows adds to the database of conn the aggregates of some range functions ("rate"), see
// agg/windows.h. The budget counts their memory until the database is
// closed.
func RegisterWindows(conn mapping.Connection, budget *Budget, functions []string) error {
	msg := (*C.char)(C.calloc(1, C.PROM_ERROR_BYTES))
	defer C.free(unsafe.Pointer(msg))
	for _, f := range functions {
		name := (*C.char)(unsafe.Pointer(unsafe.StringData(f)))
		if C.prom_register_windows(C.duckdb_connection(conn.Ptr), name, C.size_t(len(f)), C.int64_t(budget.ID()), msg) != 0 {
			return fmt.Errorf("register functions: %s", C.GoString(msg))
		}
	}
	return nil
}
