// Package sqlapp runs SQL in the DuckDB of this process, which has the functions to which PromQL is
// compiled, and has the interactive shell of `promlake sql`.
package sqlapp

import (
	"context"
	"encoding/csv"
	"encoding/json"
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

// Answer is the JSON of an answer of the SQL endpoint, which is read row by row.
type Answer struct {
	Columns []string

	dec  *json.Decoder
	body io.Closer
}

// NewAnswer reads the beginning of a successful answer. It closes the body if that fails; otherwise
// Close does.
func NewAnswer(body io.ReadCloser) (*Answer, error) {
	a := &Answer{dec: json.NewDecoder(body), body: body}
	if err := a.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the answer: %w", notEOF(err)), body.Close())
	}
	return a, nil
}

// begin reads up to the first row: {"status":"success","data":{"columns":[…],"rows":[
func (a *Answer) begin() error {
	for _, want := range []string{"{", "status", "success", "data", "{", "columns"} {
		if err := a.expect(want); err != nil {
			return err
		}
	}
	var columns []struct{ Name string }
	if err := a.dec.Decode(&columns); err != nil {
		return err
	}
	for _, c := range columns {
		a.Columns = append(a.Columns, c.Name)
	}
	if err := a.expect("rows"); err != nil {
		return err
	}
	return a.expect("[")
}

func (a *Answer) expect(want string) error {
	t, err := a.dec.Token()
	if err != nil {
		return err
	}
	if got := fmt.Sprint(t); got != want {
		return fmt.Errorf("it has %q in the place of %q", got, want)
	}
	return nil
}

// Next returns the next row as texts, and io.EOF after the last one.
func (a *Answer) Next() ([]string, error) {
	if !a.dec.More() {
		if _, err := a.dec.Token(); err != nil {
			return nil, fmt.Errorf("read the answer, which is incomplete: %w", notEOF(err))
		}
		return nil, io.EOF
	}
	var values []json.RawMessage
	if err := a.dec.Decode(&values); err != nil {
		return nil, fmt.Errorf("read the answer, which is incomplete: %w", notEOF(err))
	}
	row := make([]string, len(a.Columns))
	for i := range min(len(row), len(values)) {
		row[i] = text(values[i])
	}
	return row, nil
}

// Close ends the answer; the statement is cancelled if it still runs.
func (a *Answer) Close() error { return a.body.Close() }

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// text is a value as users read it. Rows are lines, so line ends are written as in JSON.
func text(v json.RawMessage) string {
	var s string
	switch {
	case string(v) == "null":
		return "NULL"
	case json.Unmarshal(v, &s) == nil:
		return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\e`).Replace(s)
	}
	return string(v)
}
