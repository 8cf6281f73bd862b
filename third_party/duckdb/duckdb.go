// Package duckdb holds the header of DuckDB's C API in the version of the Go binding, because cgo
// cannot include a header of another module. A package that includes the header imports this
// package, so that it is compiled again when the header changes.
package duckdb

import _ "embed"

// Header is duckdb.h.
//
//go:embed duckdb.h
var Header []byte
