package sql

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/sql/statement"
)

// open takes the database of the statement.
func (x *execution) open() (err error) {
	// The functions' memory has a budget, if the statement may call any, until closeBudget.
	if len(called(x.stmt.Text, statement.Windows, statement.Lists, statement.Plain, statement.Macro)) > 0 {
		x.budget = promsql.NewBudget(x.Settings.MemoryBytes)
		x.stopCancel = context.AfterFunc(x.ctx, x.budget.Cancel)
	}
	if x.spare != nil {
		x.db, err = x.spare.take(x.ctx)
	} else {
		x.db, err = x.Runner.open()
	}
	if err != nil {
		return err
	}
	x.db.of.Store(x)
	// The guard of the session stops when the context ends. What it counts is memory of the
	// statement.
	x.leave = x.db.guard.Enter()
	memory.Of(x.ctx).Holds(x.db.guard.Held)
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
	if x.budget == nil {
		return nil
	}
	return x.db.With(x.ctx, x.registerFunctions)
}

func (x *execution) close() error {
	if x.db == nil {
		return x.closeBudget()
	}
	x.unguard()
	memory.Of(x.ctx).Holds(nil)
	x.leave()
	if x.spare != nil && x.budget == nil { // a budget must outlive the database
		return x.spare.end(x.db)
	}
	return errors.Join(x.db.Close(), x.closeBudget())
}

// treeFactor is about the memory that Go takes for a byte of DuckDB's trees.
const treeFactor = 16

// text runs a statement that parses or plans the statement of x, and returns DuckDB's answer. What Go
// will make of it counts as planning, too.
func (x *execution) text(sql string) ([]byte, error) {
	answer, err := x.db.Text(x.ctx, sql)
	if err == nil {
		err = memory.Of(x.ctx).Charge(treeFactor * int64(len(answer)))
	}
	if err == nil && int64(len(answer)) > x.Settings.MaxPlanBytes/treeFactor {
		err = x.planTooLarge()
	}
	return answer, err
}

// check lets the rules decide about the statement and puts its parameters into its text.
func (x *execution) check() error {
	tree, err := x.text("SELECT json_serialize_sql(" + duck.Literal(x.stmt.Text) + ")::VARCHAR")
	if err != nil {
		return parseFailure(err)
	}
	if err := x.stmt.Check(pushdown.Finite(tree), viewNames, functionNames, functions); err != nil {
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
