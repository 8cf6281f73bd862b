// Package sqlapp runs SQL in the DuckDB of this process, which has the functions to which PromQL is
// compiled, and has the interactive shell of `promlake sql`.
package sqlapp

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/sql/statement"
)

// Settings configure the execution of SQL.
type Settings struct {
	Format           string // of the result: csv, json or table
	MemoryLimitBytes int64  // of DuckDB
}

// copyOptions are DuckDB's, by format.
var copyOptions = map[string]string{"csv": "FORMAT csv, HEADER", "json": "FORMAT json", "table": "FORMAT csv, HEADER, NULLSTR 'NULL', FORCE_QUOTE *"}

// Run runs one query and writes its result to w. DuckDB reads local files.
func Run(ctx context.Context, s Settings, sql string, w io.Writer) (err error) {
	options, ok := copyOptions[s.Format]
	if !ok {
		return fmt.Errorf("unknown format %q, want csv, json or table", s.Format)
	}
	dir, err := os.MkdirTemp("", "promlake-sql-*")
	if err != nil {
		return fmt.Errorf("make a directory for the result: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db := duck.New(duck.Settings{
		MemoryLimitBytes: s.MemoryLimitBytes, Threads: runtime.GOMAXPROCS(0), Connections: 1, Setup: promsql.Register,
		TempDir: func() (string, error) { return dir, nil },
	})
	defer func() { err = errors.Join(err, db.Close()) }()
	sql = strings.TrimRight(strings.TrimSpace(sql), "; \t\r\n")
	// DuckDB would crash on some statements.
	tree, err := db.Text(ctx, "SELECT json_serialize_sql("+duck.Literal(sql)+")::VARCHAR")
	if err != nil {
		return err
	}
	if err := statement.CheckLocal(tree); err != nil {
		return err
	}
	// The result goes through a file, for DuckDB writes every type of it as text.
	out := filepath.Join(dir, "result")
	text := fmt.Sprintf("COPY (%s\n) TO %s (%s)", sql, duck.Literal(out), options)
	if err := db.Each(ctx, text, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil }); err != nil {
		return err
	}
	f, err := os.Open(out)
	if err != nil {
		return fmt.Errorf("open the result: %w", err)
	}
	defer f.Close()
	if s.Format == "table" {
		rows := csv.NewReader(f)
		columns, err := rows.Read()
		if err != nil {
			return fmt.Errorf("read the result: %w", err)
		}
		return PrintTable(w, columns, rows.Read)
	}
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
