// Package kernel evaluates PromQL's range functions over one series, in C that knows no DuckDB.
// functions.h lists them. It also has what all C code of promsql shares: absent values, memory that
// is counted against a query's budget, and specs.
//
// C code includes headers of other packages by relative path, and the linker resolves the symbols.
// The go command's build cache does not see such includes. Therefore each package of C code embeds
// its own headers and imports every package whose headers it includes: a changed header changes the
// archive of its package, so the go command compiles every importer again. A test of promsql
// compares the includes with the imports.
package kernel

/*
// Absent values are found by comparing 64-bit integers, which SSE2 cannot do side by side.
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo amd64 CFLAGS: -msse4.2
#cgo LDFLAGS: -lm
*/
import "C"

import "embed"

// Headers holds the headers that C code of other packages includes.
//
//go:embed *.h
var Headers embed.FS
