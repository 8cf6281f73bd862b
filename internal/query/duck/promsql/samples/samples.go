// Package samples has the SQL aggregates that gather the samples of a series and evaluate a range
// function over them, in C. The engine calls kernels instead; promlake sql and the SQL that explain
// prints need these.
package samples

/*
// Absent values are found by comparing 64-bit integers, which SSE2 cannot do side by side.
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
#cgo amd64 CFLAGS: -msse4.2
*/
import "C"

import (
	"embed"

	_ "github.com/promlake/promlake/internal/query/duck/promsql/base"
	_ "github.com/promlake/promlake/internal/query/duck/promsql/kernel"
	_ "github.com/promlake/promlake/internal/query/duck/promsql/vec"
	_ "github.com/promlake/promlake/third_party/duckdb"
)

// Headers holds the headers that C code of other packages includes.
//
//go:embed *.h
var Headers embed.FS
