// Package windows has the SQL aggregates that statements of users call: a range function over one
// window, whose bounds or length are arguments, or over the windows of a grid, in C. They are also
// window functions of SQL.
package windows

/*
#cgo CFLAGS: -O2 -std=c11 -Wall -Wextra -Werror -DDUCKDB_STATIC_BUILD
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
