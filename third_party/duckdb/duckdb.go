// Package duckdb holds the header of DuckDB's C API as the Go binding has it: cgo cannot include a header
// of another module. What includes it imports this package, and so is compiled again when it changes.
package duckdb

import _ "embed"

// Header is duckdb.h.
//
//go:embed duckdb.h
var Header []byte
