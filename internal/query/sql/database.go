package sql

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/sql/pushdown"
	"github.com/promlake/promlake/internal/query/sql/statement"
)

// open takes the database of the statement.
func (x *execution) open() (err error) {
	x.openBudget()
	if x.spare != nil {
		x.db, err = x.spare.take(x.ctx)
	} else {
		x.db, err = x.Runner.open()
	}
	if err != nil {
		return err
	}
	x.db.of.Store(x)
	x.watch()
	if x.budget == nil {
		return nil
	}
	return x.db.With(x.ctx, x.registerAggregates)
}

// watch enters the guard of the session, and stops it when the context ends.
func (x *execution) watch() {
	x.leave = x.db.guard.Enter()
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(x.ctx, func() {
		defer close(stopped)
		x.db.guard.Stop()
	})
	x.unguard = func() {
		if !unwatch() {
			<-stopped
		}
	}
}

func (x *execution) close() error {
	if x.db == nil {
		return x.closeBudget()
	}
	x.unguard()
	x.leave()
	if x.spare != nil && x.budget == nil { // a budget must outlive the database
		return x.spare.end(x.db)
	}
	return errors.Join(x.db.Close(), x.closeBudget())
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
	if err := x.stmt.Check(pushdown.Finite(tree), viewNames, functionNames, aggregates); err != nil {
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
