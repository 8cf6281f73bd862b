package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/guard"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/sql/pushdown"
	"github.com/promlake/promlake/internal/query/sql/statement"
)

// scanFunction is the table function behind the views. Its argument is the name of a view and a
// number, so that each mention of a view in a statement is a scan of its own.
const scanFunction = "promlake_scan"

// hidden is the beginning of the names that views select from: they are no tables, so DuckDB asks
// for them each time that a view is mentioned.
const hidden = "promlake_view_"

// functionNames are the table functions that statements may call.
var functionNames = []string{metricFunction, promqlFunction}

// locked takes the files, the network and the settings away from a database.
var locked = []string{
	"SET TimeZone = 'UTC'",
	"SET allow_community_extensions = false",
	"SET enable_external_access = false",
	"SET lock_configuration = true",
}

// A statement's guard admits this multiple of the memory that DuckDB counts, and these bytes: it is
// there for what DuckDB does not count.
const (
	guardFactor = 2
	guardBytes  = 64 << 20
)

// open creates the database of the statement.
func (x *execution) open() error {
	x.openBudget()
	g, err := guard.New(guardFactor*x.Settings.MemoryBytes + guardBytes)
	if err != nil {
		return fmt.Errorf("open a database for SQL: %w", err)
	}
	x.guard, x.leave = g, g.Enter()
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(x.ctx, func() {
		defer close(stopped)
		g.Stop()
	})
	x.unguard = func() {
		if !unwatch() {
			<-stopped
		}
	}
	x.db = duck.New(duck.Settings{
		MemoryLimitBytes: x.Settings.MemoryBytes, TempBytes: x.Settings.SpillBytes, Threads: x.Settings.Threads, Connections: 1, Guard: g,
		TempDir: x.directory, Setup: x.setup,
		Opened: func(db mapping.Database) { table.Replace(db, x.replacement) },
	})
	return x.db.Open()
}

func (x *execution) close() error {
	if x.guard == nil {
		return x.closeBudget()
	}
	x.unguard()
	err := errors.Join(x.db.Close(), x.closeBudget())
	x.leave()
	x.guard.Close()
	return err
}

// setup registers the functions, creates the views and locks the database.
func (x *execution) setup(conn mapping.Connection) error {
	for _, f := range []table.Function{
		{Name: scanFunction, Parameters: 1, Bind: x.bindScan},
		{Name: metricFunction, Parameters: 3, Bind: x.bindMetric},
		{Name: promqlFunction, Parameters: 4, Bind: x.bindPromQL},
	} {
		if err := table.Register(conn, f); err != nil {
			return err
		}
	}
	statements, err := x.registerAggregates(conn)
	if err != nil {
		return err
	}
	for _, v := range viewNames {
		statements = append(statements, "CREATE VIEW "+v+" AS FROM "+hidden+v)
	}
	for _, s := range append(statements, locked...) {
		var res mapping.Result
		failed := mapping.Query(conn, s, &res) == mapping.StateError
		message := mapping.ResultError(&res)
		mapping.DestroyResult(&res)
		if failed {
			return fmt.Errorf("prepare a database for SQL: %s: %s", s, message)
		}
	}
	return nil
}

// replacement is called where a view is mentioned.
func (x *execution) replacement(name string) (function, argument string, ok bool) {
	view, ok := strings.CutPrefix(name, hidden)
	if !ok {
		return "", "", false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mentions++
	return scanFunction, fmt.Sprintf("%s#%d", view, x.mentions), true
}

// text runs a statement that returns one text.
func (x *execution) text(sql string) (out []byte, err error) {
	err = x.db.Each(x.ctx, sql, []string{duck.Varchar}, func(_ int, columns []duck.Vector) error {
		out = append(out, columns[0].Strings()[0].Bytes()...)
		return nil
	})
	return out, err
}

// check lets the rules decide about the statement and puts its parameters into its text.
func (x *execution) check() error {
	tree, err := x.text("SELECT json_serialize_sql(" + duck.Literal(x.stmt.Text) + ")::VARCHAR")
	if err != nil {
		return parseFailure(err)
	}
	if err := x.stmt.Check(pushdown.Finite(tree), viewNames, functionNames, aggregateNames); err != nil {
		return err
	}
	bound, err := x.stmt.Bound(x.question.Params)
	if err != nil || bound == nil {
		return err
	}
	text, err := x.text("SELECT json_deserialize_sql(" + duck.Literal(string(bound)) + ")")
	x.stmt.Text = string(text)
	return parseFailure(err)
}

// parseFailure is the error of a text that DuckDB's parser fails on other than by its answer: of
// one that nests too deeply.
func parseFailure(err error) error {
	var d *duck.Error
	if errors.As(err, &d) && !d.OutOfMemory && !d.Internal {
		return &statement.RefusedError{Reason: d.Message}
	}
	return err
}
