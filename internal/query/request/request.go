// Package request carries through contexts what one request needs from the storage in addition to
// its question, what it may take, and what its reads took. The HTTP API, the engine and the storage
// share it, so that none of them imports another. Whose data is read is in internal/access/tenant.
package request

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/promlake/promlake/internal/prom/expression"
)

// Request belongs to one HTTP request or one PromQL query. The zero value asks for the present
// state, without limits.
type Request struct {
	// AsOf is the time as of which data is read. Zero: now.
	AsOf time.Time
	// NoCache means that no answer is kept, and none that was.
	NoCache bool
	// Since is a time before which no snapshot may have been begun: the reads see what was stored
	// before it. Zero: a shared snapshot may be as old as the settings allow.
	Since time.Time
	// Stats sums what the reads take. nil: it is not needed.
	Stats *Stats
	// Bytes ends the query once its reads exceed a limit. nil: no limit.
	Bytes *ByteBudget
	// Results limits what the query makes of the series that it finds. nil: no limit.
	Results *ResultBudget
	// Snapshot is what the query was planned on, so that all of its reads see the same objects.
	// nil: each read takes its own.
	Snapshot *Snapshot
	// Inside means that reads are part of a query that has its turn: a query among them neither waits
	// nor has limits of bytes of its own.
	Inside bool
	// Leave ends the query's turn before the query ends, for one that only writes its answer from then
	// on: a client that reads slowly keeps nobody waiting. nil: the query has no turn.
	Leave func()
	// Idle calls fn, in which a query waits for its client. Others get its turn if that takes long. It
	// must not follow Leave. nil: the query has no turn.
	Idle func(fn func())
	// Limits lower the cost limits of the engine for a query.
	Limits CostLimits
	// Quote gets the estimate of a query, and counts what it reads. nil: nobody asks for it.
	Quote *Quote
	// Origin is the HTTP request behind a query. nil: the process asks itself, as for a rule.
	Origin *Origin
	// Took sums what the query takes. nil: it is not needed.
	Took *Took
	// Progress is told how far the scans of a SQL statement are. nil: it is not needed.
	Progress *Progress
}

// ErrNarrow reports that a read needs the objects of a wider range than those of its snapshot. The
// snapshot's range takes a wider one and repeats the read.
var ErrNarrow = errors.New("the snapshot is too narrow")

type ctxKey struct{}

// From returns the request that ctx carries, the zero value if it carries none.
func From(ctx context.Context) Request {
	r, _ := ctx.Value(ctxKey{}).(Request)
	return r
}

// With returns ctx carrying r instead of the request that it carried.
func With(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, ctxKey{}, r)
}

// WithAsOf returns ctx whose reads see the data as it stood at t.
func WithAsOf(ctx context.Context, t time.Time) context.Context {
	r := From(ctx)
	r.AsOf = t
	return With(ctx, r)
}

// WithNoCache returns ctx whose queries neither keep answers nor use kept ones.
func WithNoCache(ctx context.Context) context.Context {
	r := From(ctx)
	r.NoCache = true
	return With(ctx, r)
}

// WithStats returns ctx whose reads are summed in s.
func WithStats(ctx context.Context, s *Stats) context.Context {
	r := From(ctx)
	r.Stats = s
	return With(ctx, r)
}

// WithProgress returns ctx whose SQL statement shows in p how far it is.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	r := From(ctx)
	r.Progress = p
	return With(ctx, r)
}

// WithSince returns ctx whose reads see everything that was stored before t.
func WithSince(ctx context.Context, t time.Time) context.Context {
	r := From(ctx)
	r.Since = t
	return With(ctx, r)
}

// Question is a query that is to be explained. Step 0 makes it an instant query, at End.
type Question struct {
	Text       string
	Start, End time.Time
	Step       time.Duration
	Lookback   time.Duration // 0 = the stage's
	Analyze    bool          // run the statements, and report their measurements

	// WithoutStatements leaves out the statements, whose texts grow with the number of series.
	// Analyze is then false.
	WithoutStatements bool

	Statement *Statement // of SQL, in place of all others; only for slices
}

// Statement is a SQL statement.
type Statement struct {
	Text   string
	Params json.RawMessage // an array, or an object by name; nil = none
	Format string          // of the result: json, csv, arrow or parquet
	// Snapshot is the one on which the statement runs, a divide.Pin. nil: the present one.
	Snapshot json.RawMessage

	Expressions expression.Limits // of the PromQL in it
}

// Output is where the result of a statement goes.
type Output interface {
	io.Writer
	// Reset drops what was written, unless some of it was sent: then it returns false.
	Reset() bool
}
