package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/sql/encode"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/sql/statement"
	"github.com/promlake/promlake/internal/sql/views"
	"github.com/promlake/promlake/internal/store/catalog"
)

// execution is one statement.
type execution struct {
	*Runner
	ctx      context.Context
	question request.Statement
	params   statement.Parameters
	out      request.Output
	stmt     statement.Statement
	db       *session
	leave    func()      // the guard of the session
	unguard  func() bool // ends the watch that stops the guard; false: it was stopped
	enc      encode.Writer

	scans      []scan // by plan
	mint, maxt int64  // ms: of all scans
	rowwise    bool   // each row is made from one row of one scan

	snap       catalog.Snapshot
	wide       bool // the snapshot has what the choice among replicas depends on
	rows, sent int64
	held       int64 // bytes that are charged for batches
	attempted  bool

	mu       sync.Mutex
	mentions int                                          // of views, in the statement that is being planned
	failed   error                                        // the first one of a table
	metrics  map[string]*metricTable                      // by key
	calls    []*promqlTable                               // of promql, each once
	reached  [2]int64                                     // ms: the range that calls of promql read
	counts   map[string][]func() (stored, computed int64) // of rows of buckets, by scan
	notes    annotations.Annotations                      // of PromQL
}

// scan is what one table of the statement reads.
type scan struct {
	key        string
	name       string
	constraint pushdown.Constraint
	table      table.Table
	reads      []int // positions in the table's columns
}

// String implements fmt.Stringer.
func (s scan) String() string { return s.name + ": " + s.constraint.String() }

// prepare checks the statement, and prepares the database for what it calls.
func (x *execution) prepare() error {
	if err := x.check(); err != nil {
		return err
	}
	// Of other maps, DuckDB would cast some to have them looked up as labels are.
	switch maps := x.stmt.MakesMaps(); {
	case maps && x.db.lookup:
		if err := x.exit(true); err != nil {
			return err
		}
		return x.enter(true)
	case !maps && !x.db.lookup:
		x.db.lookup = true
		return x.db.With(x.ctx, table.RegisterLookup)
	}
	return nil
}

// plan reads from DuckDB's plan what the tables of the statement have to deliver. The statement
// runs in the transaction in which it was planned, so that now() is the same in both.
func (x *execution) plan() error {
	if err := x.begin(); err != nil {
		return err
	}
	x.scans, x.mentions = nil, 0
	answer, err := x.text("SELECT json_serialize_plan(" + duck.Literal(x.stmt.Text) + ", optimize := true, skip_null := true, skip_empty := true)::VARCHAR")
	if err != nil {
		return err
	}
	found, rowwise, err := pushdown.Scans(answer)
	if err != nil {
		return err
	}
	x.mint, x.maxt, x.rowwise = nothing[0], nothing[1], rowwise
	for _, f := range found {
		switch f.Function {
		case scanFunction:
			if id := f.Arguments[0]; id != nil && viewOf(*id) != metadataView {
				c := f.Constraint(views.Meaning)
				if step, ok := views.RollupSteps[viewOf(*id)]; ok {
					c = c.Buckets(step, key.MinTime, key.MaxTime)
				}
				t, err := x.bindScan(f.Arguments)
				if err != nil {
					return err
				}
				x.add(scan{key: *id, name: viewOf(*id), constraint: c, table: t, reads: f.Reads})
			}
		case metricFunction:
			name, mint, maxt, err := metricArguments(f.Arguments)
			k := metricKey(name, mint, maxt)
			if m := x.metrics[k]; err == nil && m != nil {
				t := &views.Samples{Store: x.Store, Reader: &reader{x, k, m.base()}, Shape: m.shape}
				x.add(scan{key: k, name: metricFunction + " " + name, constraint: m.base().And(f.Constraint(m.shape.Meaning)), table: t})
			}
		}
	}
	for k, m := range x.metrics {
		if !slices.ContainsFunc(x.scans, func(s scan) bool { return s.key == k }) {
			x.reach(m.mint, m.maxt)
		}
	}
	x.mint, x.maxt = min(x.mint, x.reached[0]), max(x.maxt, x.reached[1])
	return nil
}

// begin begins a transaction.
func (x *execution) begin() error {
	rows, err := x.db.Stream(x.ctx, "BEGIN TRANSACTION READ ONLY")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// attempt executes the planned statement. After an attempt that failed, it plans the statement
// again, in a new transaction: now() is later then, and the range of the snapshot is not.
func (x *execution) attempt() error {
	if x.attempted {
		x.db.CloseIdle()
		mint, maxt := x.mint, x.maxt
		if err := x.plan(); err != nil {
			return err
		}
		x.mint, x.maxt = mint, maxt
	}
	x.attempted = true
	return x.execute()
}

// note keeps the warnings of a PromQL query for the answer.
func (x *execution) note(more annotations.Annotations) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes.Merge(more)
}

// add notes a scan. What two scans have in common, they read both.
func (x *execution) add(s scan) {
	if s.constraint.MinT <= s.constraint.MaxT {
		x.mint, x.maxt = min(x.mint, s.constraint.MinT), max(x.maxt, s.constraint.MaxT)
	}
	for i := range x.scans {
		if x.scans[i].key == s.key {
			x.scans[i].constraint = x.scans[i].constraint.Or(s.constraint)
			x.scans[i].reads = append(x.scans[i].reads, s.reads...)
			return
		}
	}
	x.scans = append(x.scans, s)
}

// within returns what a scan has to deliver: everything in the range of the snapshot, if the plan
// does not have it.
func (x *execution) within(key string) pushdown.Constraint {
	for _, s := range x.scans {
		if s.key == key {
			return s.constraint
		}
	}
	return pushdown.All()
}

// valueBytes is what a value of a batch takes outside of DuckDB's memory, about: as a value of a
// chunk, and as one for Arrow. Both are in pieces that are too small for the guard.
const valueBytes = 32

// execute runs the statement and writes its rows.
func (x *execution) execute() error {
	text, allowed := x.stmt.Text, mapping.StatementTypeSelect
	var e *explanation
	if x.stmt.Explain {
		var err error
		if e, err = x.forecast(); err != nil {
			return err
		}
		text, allowed = "EXPLAIN "+text, mapping.StatementTypeExplain
		if x.stmt.Analyze {
			text = "EXPLAIN ANALYZE " + x.stmt.Text
		}
	}
	if !x.stmt.Explain || x.stmt.Analyze {
		x.beginProgress()
	}
	x.mu.Lock()
	x.mentions = 0
	x.mu.Unlock()
	rows, err := x.db.Stream(x.ctx, text, allowed)
	if err != nil {
		return err
	}
	defer rows.Close()
	types, names := rows.Types(), rows.Names()
	columns := make([]encode.Column, len(types))
	for i := range types {
		columns[i] = encode.Column{Name: names[i], Type: duck.TypeName(types[i])}
		defer mapping.DestroyLogicalType(&types[i])
	}
	conv, err := encode.NewConverter(rows.Connection(), names, types)
	if err != nil {
		return err
	}
	defer conv.Close()
	if x.enc, err = encode.New(encode.Format(x.question.Format), x, conv.Schema(), columns); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	leaves := int64(encode.Leaves(conv.Schema().Fields()))
	for rows.Next() {
		if err := x.hold(int64(rows.Len()) * leaves * valueBytes); err != nil {
			return err
		}
		if x.rows += int64(rows.Len()); x.rows > x.Settings.MaxRows {
			return &request.LimitError{Limit: "rows of a result", Value: x.Settings.MaxRows, Needed: x.rows, Flag: "--sql.max-rows"}
		}
		batch, err := conv.Batch(rows.Chunk())
		if err != nil {
			return err
		}
		if err = x.hold(encode.Size(batch, encode.Format(x.question.Format))); err == nil {
			err = x.enc.Write(batch)
		}
		batch.Release()
		if err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if x.stmt.Explain {
		return x.explained(e, conv.Schema())
	}
	return nil
}

// hold charges the statement until its end for the largest batch that it has written: n bytes of
// the next one.
func (x *execution) hold(n int64) error {
	if n <= x.held {
		return nil
	}
	if err := memory.Of(x.ctx).Charge(n - x.held); err != nil {
		return err
	}
	x.held = n
	return nil
}

// beginProgress names the scans whose progress is known.
func (x *execution) beginProgress() {
	p := request.From(x.ctx).Progress
	if p == nil {
		return
	}
	var names []string
	for _, s := range x.scans {
		if _, ok := s.table.(views.Forecaster); ok {
			names = append(names, s.key)
		}
	}
	p.Begin(names)
}

// Write implements io.Writer: it counts the bytes of the result. It fails when the statement has
// ended, so that no more of a large batch is encoded.
func (x *execution) Write(p []byte) (n int, err error) {
	if err := context.Cause(x.ctx); err != nil {
		return 0, err
	}
	if x.sent += int64(len(p)); x.sent > x.Settings.MaxBytes {
		return 0, &request.LimitError{Limit: "bytes of a result", Value: x.Settings.MaxBytes, Needed: x.sent, Flag: "--sql.max-result-bytes"}
	}
	request.From(x.ctx).Idle(func() { n, err = x.out.Write(p) })
	return n, err
}

// because returns the error of a scan instead of the text that DuckDB has made of it, and gives
// DuckDB's own errors their types.
func (x *execution) because(err error) error {
	x.mu.Lock()
	failed := x.failed
	x.mu.Unlock()
	var d *duck.Error
	switch {
	case err == nil || x.db == nil || errors.Is(err, x.ctx.Err()):
		return err
	case x.ctx.Err() != nil:
		return fmt.Errorf("run a statement: %w", x.ctx.Err()) // whatever it made of DuckDB's answer
	case failed != nil:
		return failed
	case x.db.guard.Crowded():
		if err := memory.Of(x.ctx).Refused(); err != nil {
			return err
		}
		return x.tooMuchMemory()
	case x.db.guard.Exceeded() || x.db.budget.Err() != nil:
		return x.tooMuchMemory()
	case x.db.guard.Planned():
		return x.planTooLarge()
	case !errors.As(err, &d) || d.Internal:
		return err
	case d.OutOfMemory:
		return x.tooMuchMemory()
	default:
		return &FailedError{d.Message}
	}
}
