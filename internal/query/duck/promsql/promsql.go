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

#include "vec/windows.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	_ "github.com/duckdb/duckdb-go-bindings" // links DuckDB
	"github.com/duckdb/duckdb-go/v2/mapping"

	_ "github.com/promlake/promlake/internal/query/duck/promsql/kernel"
	_ "github.com/promlake/promlake/internal/query/duck/promsql/vec"
	"github.com/promlake/promlake/internal/query/duck/table"
)

// Register adds the functions to the database of conn. DuckDB refuses to add them twice to one
// database.
func Register(conn mapping.Connection) error {
	if err := registerOver(conn, "", 0); err != nil {
		return err
	}
	return table.Register(conn, rowsFunction)
}

// RegisterLists adds to the database of conn some of the functions over lists of values
// ("prom_binary"). The budget counts their memory until the database is closed.
func RegisterLists(conn mapping.Connection, budget *Budget, functions []string) error {
	for _, f := range functions {
		if err := registerOver(conn, f, budget.ID()); err != nil {
			return err
		}
	}
	return nil
}

// registerOver registers one of the functions over lists, or all of them. budget 0: specs name one.
func registerOver(conn mapping.Connection, only string, budget int) error {
	var msg message
	if C.prom_register_vec(C.duckdb_connection(conn.Ptr), textOf(only), C.int64_t(budget), &msg[0]) != 0 {
		return fmt.Errorf("register functions: %w", msg.error())
	}
	return nil
}

// RegisterWindows adds to the database of conn the aggregates of some range functions ("rate"), see
// vec/windows.h. The budget counts their memory until the database is closed.
func RegisterWindows(conn mapping.Connection, budget *Budget, functions []string) error {
	var msg message
	for _, f := range functions {
		name := (*C.char)(unsafe.Pointer(unsafe.StringData(f)))
		if C.prom_register_windows(C.duckdb_connection(conn.Ptr), name, C.size_t(len(f)), C.int64_t(budget.ID()), &msg[0]) != 0 {
			return fmt.Errorf("register functions: %w", msg.error())
		}
	}
	return nil
}
