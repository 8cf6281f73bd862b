// Package promsql gives a DuckDB database the SQL functions of PromQL, written in C: aggregates over the samples of a series that return
// one value per step of a grid, and functions over such lists of values.
//
// In a list of values a step without a sample is Prometheus's stale marker. Parameters come as a constant spec text of key=value pairs
// (see promsql.h). Memory of the functions is outside of DuckDB's limit: it is counted against the Budget that the spec names.
//
// Samples that Go reads itself need no aggregate: a Kernel evaluates them series by series, and Publish hands the lists to SQL as the
// table prom_rows(id).
package promsql

/*
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo LDFLAGS: -lm
#include <stdlib.h>

#include "register.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	_ "github.com/duckdb/duckdb-go-bindings" // links DuckDB
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Register adds the functions to the database of conn. DuckDB refuses to add them twice to one database.
func Register(conn mapping.Connection) error {
	msg := (*C.char)(C.calloc(1, C.PROM_ERROR_BYTES))
	defer C.free(unsafe.Pointer(msg))
	if C.prom_register_range(C.duckdb_connection(conn.Ptr), msg) != 0 {
		return fmt.Errorf("register range functions: %s", C.GoString(msg))
	}
	if C.prom_register_vec(C.duckdb_connection(conn.Ptr), msg) != 0 {
		return fmt.Errorf("register vector functions: %s", C.GoString(msg))
	}
	if C.prom_register_rows(C.duckdb_connection(conn.Ptr), msg) != 0 {
		return fmt.Errorf("register table functions: %s", C.GoString(msg))
	}
	return nil
}
