package sql

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/sql/statement"
)

// enter takes a session for the statement, plain or not (see sessions.take).
func (x *execution) enter(plain bool) (err error) {
	if x.db, err = x.sessions.take(tenant.From(x.ctx), plain); err != nil {
		return err
	}
	x.db.of.Store(x)
	// The guard of the session stops when the context ends, and so does what PromQL's functions
	// compute. What the guard counts is memory of the statement.
	x.leave = x.db.guard.Enter()
	memory.Of(x.ctx).Holds(x.db.guard.Held)
	stopped := make(chan struct{})
	unwatch := context.AfterFunc(x.ctx, func() {
		defer close(stopped)
		x.db.guard.Stop()
		x.db.budget.Cancel()
	})
	x.unguard = func() (untouched bool) {
		if unwatch() {
			return true
		}
		<-stopped
		return false
	}
	return nil
}

// exit gives the session back. Another statement may use it if all that this one did has ended.
func (x *execution) exit(reusable bool) error {
	untouched := x.unguard()
	memory.Of(x.ctx).Holds(nil)
	x.db.CloseIdle()
	reusable = reusable && untouched && x.db.idle()
	x.leave()
	x.db.of.Store(&execution{Runner: x.Runner})
	s := x.db
	x.db = nil
	return x.sessions.end(s, reusable)
}

// close ends the statement, which had an error or not. After the errors of a text or of data, the
// session is as it was.
func (x *execution) close(err error) error {
	if x.db == nil {
		return nil
	}
	var refused *statement.RefusedError
	var failed *FailedError
	var unplanned *pushdown.PlanError
	return x.exit(err == nil || errors.As(err, &refused) || errors.As(err, &failed) || errors.As(err, &unplanned))
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
	if err := x.stmt.Check(tree, viewNames, functionNames, functions); err != nil {
		return err
	}
	bound, err := x.stmt.Bound(x.params)
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
