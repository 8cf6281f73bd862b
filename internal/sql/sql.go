// Package sql answers SQL statements over a tenant's data. A statement takes this way:
//
//	statement  decides whether it may run, on the tree of DuckDB's parser
//	pushdown   reads from DuckDB's plan which samples it can use
//	views      read these samples as tables, chunk by chunk
//	encode     writes the result
//
// Each statement has a database of its own, in memory, without files, network or settings.
package sql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/sql/statement"
	"github.com/promlake/promlake/internal/sql/views"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Limits are the limits of the results of SQL statements. The tags are those of package settings.
type Limits struct {
	MaxRows      int64 `name:"sql.max-rows" default:"100000000" min:"1" help:"Rows that the result of one SQL statement may have." when:"Lower it if clients ask for more than they can use."`
	MaxPlanBytes int64 `name:"sql.max-plan-bytes" type:"bytes" default:"256MiB" min:"1" help:"What planning one SQL statement may allocate, counting what it frees again. Queries that are written inside each other, such as WITH … NOT MATERIALIZED, are planned at each mention." when:"Raise it if generated statements are refused."`
	MaxBytes     int64 `name:"sql.max-result-bytes" type:"bytes" default:"10GiB" min:"1" help:"Size of the result of one SQL statement, as it is sent." when:"Lower it to bound what one statement may transfer."`
}

// Settings of a runner. Callers fill every field.
type Settings struct {
	Limits
	MemoryBytes int64 // of DuckDB for one statement
	SpillBytes  int64 // disk space of one statement beyond its memory
	Threads     int   // of one statement
}

// Runner runs statements. It is safe for concurrent use.
type Runner struct {
	Parts
	sessions sessions
	count    atomic.Int64 // sessions, for the names of their directories
}

// Parts are what a runner needs.
type Parts struct {
	Settings  Settings
	Snapshots *snapshot.Cache
	Store     *views.Store
	Engine    *engine.Engine
	Queryable storage.Queryable // that the engine evaluates PromQL over
	// Price returns what a PromQL query takes from the store.
	Price  func(ctx context.Context, query string, start, end time.Time, step time.Duration) (source.Cost, error)
	Remote bool // the store is
	// Metadata returns the descriptions of metric families by name.
	Metadata func(context.Context) (map[string][]metadata.Metadata, error)
	Work     *tempdir.WorkDir
	Logger   *slog.Logger
}

// New returns a runner.
func New(p Parts) *Runner {
	r := &Runner{Parts: p}
	r.sessions.open = r.open
	return r
}

// Close frees what the runner holds. No statement may run or begin.
func (r *Runner) Close() error { return r.sessions.Close() }

// Run runs a statement on the data of ctx's tenant, at the time that ctx's request names. The
// errors that it returns beside those of reads:
//
//	*statement.RefusedError   the statement is not answered
//	*pushdown.PlanError       DuckDB cannot plan it: unknown columns, wrong types
//	*FailedError              it failed: a cast of a wrong text, a sum that is too large
//	*request.LimitError       it needs too much
func (r *Runner) Run(ctx context.Context, q request.Statement, out request.Output) error {
	return r.prepared(ctx, q, out, func(x *execution) error {
		if err := x.plan(); err != nil {
			return x.because(err)
		}
		if s := request.From(x.ctx).Snapshot; s.IsPinned() {
			request.From(x.ctx).Origin.Part.Store(true) // who has taken the snapshot counts the query
			if x.mint < s.MinT || x.maxt > s.MaxT {
				return &FailedError{fmt.Sprintf("the statement reads times (ms) from %d to %d, and its snapshot has %d to %d", x.mint, x.maxt, s.MinT, s.MaxT)}
			}
		}
		notes, err := r.Snapshots.Range(x.mint, x.maxt).ReadWide(x.ctx, func(snap *catalog.Snapshot, wide bool) error { return x.run(*snap, wide) })
		if err != nil {
			return err
		}
		r.Logger.Debug("answer SQL", "tenant", tenant.From(x.ctx), "rows", x.rows, "bytes", x.sent, "scans", x.String())
		warnings := []string{}
		for _, w := range notes.Merge(x.notes).AsErrors() {
			warnings = append(warnings, w.Error())
		}
		return x.enc.End(warnings)
	})
}

// prepared takes the turn of a statement and calls fn once it is checked. Errors are those of Run.
func (r *Runner) prepared(ctx context.Context, q request.Statement, out request.Output, fn func(x *execution) error) error {
	params, err := statement.ParseParameters(q.Params)
	if err != nil {
		return err
	}
	if a := request.From(ctx).Origin; a != nil {
		a.Text = q.Text
	}
	return r.Engine.Run(ctx, func(ctx context.Context) (err error) {
		s, err := statement.Split(q.Text)
		if err != nil {
			return err
		}
		x := &execution{Runner: r, ctx: ctx, question: q, params: params, out: out, stmt: s, metrics: map[string]*metricTable{}, reached: nothing}
		defer func() { err = errors.Join(err, x.close(err)) }()
		if err := x.enter(false); err != nil {
			return err
		}
		if err := x.prepare(); err != nil {
			return x.because(err)
		}
		return fn(x)
	})
}

// run executes the planned statement on a snapshot. It is called again with another one if objects
// are gone or damaged, unless a part of the result was sent.
func (x *execution) run(snap catalog.Snapshot, wide bool) error {
	x.wide = wide
	x.snap, x.failed, x.rows, x.sent, x.notes = snap, nil, 0, 0, nil
	x.counts = map[string][]func() (stored, computed int64){}
	err := x.wideEnough()
	if err == nil {
		err = x.because(x.attempt())
	}
	if err == nil || x.out.Reset() {
		return err
	}
	var damaged *source.DamagedError
	if errors.Is(err, objstore.ErrNotFound) || errors.As(err, &damaged) {
		return fmt.Errorf("the result was sent in part: %v", err) // without its type: nobody tries again
	}
	return err
}

// wideEnough returns request.ErrNarrow if a scan that is planned needs a wide snapshot.
func (x *execution) wideEnough() error {
	for _, s := range x.scans {
		t, ok := s.table.(views.Shown)
		if !ok {
			continue
		}
		narrow, err := t.Narrow()
		if err != nil {
			return err
		}
		if narrow {
			return request.ErrNarrow
		}
	}
	return nil
}

// FailedError reports that a statement failed because of its data.
type FailedError struct{ Message string }

// Error implements error.
func (e *FailedError) Error() string { return e.Message }

// QueryFailed marks an error that the HTTP API answers with 422: the same statement fails again.
func (*FailedError) QueryFailed() bool { return true }

// directory returns the directory to which the next session spills. DuckDB creates and removes
// it.
func (r *Runner) directory() (string, error) {
	dir, err := r.Work.Path(tempdir.Spill)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "sql-"+strconv.FormatInt(r.count.Add(1), 10)), nil
}

// tooMuchMemory is the error of a statement that memory and disk were not enough for.
func (r *Runner) tooMuchMemory() error {
	return &request.LimitError{
		Limit: "bytes of memory of DuckDB per statement", Value: r.Settings.MemoryBytes, Flag: request.MemoryFlag, Advice: "or --query.spill-bytes",
	}
}

// planTooLarge is the error of a statement whose plan grows beyond its text.
func (r *Runner) planTooLarge() error {
	return &request.LimitError{Limit: "bytes that planning a SQL statement allocates", Value: r.Settings.MaxPlanBytes, Flag: "--sql.max-plan-bytes"}
}

// String describes the scans of the statement.
func (x *execution) String() string {
	out := make([]string, len(x.scans))
	for i, s := range x.scans {
		out[i] = s.String()
	}
	return strings.Join(out, "; ")
}
