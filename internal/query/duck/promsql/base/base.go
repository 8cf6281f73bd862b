// Package base has what all C code of promsql shares: absent values, memory that is counted against a
// query's budget, and specs. Nothing here knows DuckDB.
//
// C code includes headers of other packages by relative path, and the linker joins the packages. The go
// command does not see such includes. So each package of C code embeds its own headers, and imports every
// package whose headers it includes: a header that changes changes the archive of its package, and with it
// everything that imports that is compiled again. A test of promsql holds the imports against the includes.
package base

/*
// Absent values are found by comparing 64-bit integers, which SSE2 cannot do side by side.
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo amd64 CFLAGS: -msse4.2
#cgo LDFLAGS: -lm
*/
import "C"

import (
	"embed"
)

// Headers holds the headers that C code of other packages includes.
//
//go:embed *.h
var Headers embed.FS
