// Package vec has the SQL functions over lists of values, in C, and SQL aggregates: those across
// series, and those that statements of users call (windows.h): a range function over one window,
// whose bounds or length are arguments, or over the windows of a grid. The latter are also window
// functions of SQL.
package vec

/*
// Absent values are found by comparing 64-bit integers, which SSE2 cannot do side by side.
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo amd64 CFLAGS: -msse4.2
*/
import "C"

import (
	"embed"

	_ "github.com/promlake/promlake/internal/query/duck/promsql/kernel"
	_ "github.com/promlake/promlake/third_party/duckdb"
)

// Headers holds the headers that C code of other packages includes.
//
//go:embed *.h
var Headers embed.FS
