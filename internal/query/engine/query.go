package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/request"
)

// Query is a PromQL query. Exec pushes down what can be, and lets a query of upstream's engine
// evaluate what is left. It implements promql.Query.
type Query struct {
	engine *Engine
	text   string
	expr   *known          // of the text
	asked  parser.EvalStmt // as upstream's engine prepares it; plans share its expression
	stats  stats.Statistics
	exec   *exec.Executor // nil: nothing is pushed down
	view   *view          // what upstream's query reads
	left   parser.Expr    // what upstream's query evaluates; nil: all of it
	piece  *divide.Piece  // of another query, that this one is; nil: it is a query
	parts  *divide.Answer // of a divided query; nil: it is not divided
	entire bool           // it was divided, and is to be evaluated undivided

	keeping *keeping // nil: no slice of it is kept, nor may be

	make   func(*view) (promql.Query, error) // makes upstream's query
	up     promql.Query                      // nil: there is none
	points *[]promql.FPoint                  // of the answer; nil: they are upstream's

	mu     sync.Mutex
	cancel context.CancelFunc // while the query runs
}

// Statement implements promql.Query.
func (q *Query) Statement() parser.Statement { return &q.asked }

// Stats implements promql.Query.
func (q *Query) Stats() *stats.Statistics { return &q.stats }

// String implements promql.Query.
func (q *Query) String() string { return q.text }

// Cancel implements promql.Query.
func (q *Query) Cancel() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel != nil {
		q.cancel()
	}
}

// Exec implements promql.Query.
func (q *Query) Exec(asked context.Context) *promql.Result {
	total := q.stats.Timers.GetTimer(stats.ExecTotalTime).Start()
	var res *promql.Result
	err := q.Run(asked, func(ctx context.Context) error {
		if q.piece == nil { // else it was counted where it was divided
			for _, id := range tenant.All(ctx) {
				q.engine.usage.Query(id, q.expr.asks)
			}
		}
		notes, err := q.push(ctx)
		if err == nil && q.view.whole == nil && q.parts == nil {
			err = q.walkable()
		}
		total.Stop()
		if err != nil {
			return err
		}
		defer q.view.release()
		if r := q.view.whole; r != nil {
			res = q.answer(ctx, r)
		} else if q.parts != nil {
			res = q.joined(q.parts)
		} else {
			if q.view.snap != nil { // the engine's reads see the objects that the plan has seen
				r := request.From(ctx)
				r.Snapshot = &request.Snapshot{Snapshot: *q.view.snap, Wide: q.view.wide, Pinned: r.Snapshot.IsPinned()}
				ctx = request.With(ctx, r)
			}
			res = q.evaluate(ctx)
		}
		if res.Err == nil {
			// Charge the text that the API makes of the result.
			var n int64
			series := func(l labels.Labels, points int) { n += 2*int64(l.ByteSize()) + bytesPerAnswer*int64(points) }
			switch v := res.Value.(type) {
			case promql.Matrix:
				for _, s := range v {
					series(s.Metric, len(s.Floats)+len(s.Histograms))
				}
			case promql.Vector:
				for _, s := range v {
					series(s.Metric, 1)
				}
			}
			if err := memory.Of(ctx).Charge(n); err != nil {
				res = &promql.Result{Err: err}
			}
		}
		res.Warnings.Merge(notes)
		q.keep(res)
		return res.Err
	})
	if res == nil {
		res = &promql.Result{}
	}
	res.Err = err
	return res
}

// evaluate lets upstream's engine evaluate what is left of the query.
func (q *Query) evaluate(ctx context.Context) *promql.Result {
	up, err := q.make(q.view)
	if err != nil {
		return &promql.Result{Err: err}
	}
	if stmt, ok := up.Statement().(*parser.EvalStmt); ok {
		if q.left != nil {
			stmt.Expr = q.left
		}
		if b := request.From(ctx).Results; b != nil {
			b.Copies(countSteps(stmt).copied)
		}
	}
	s := up.Stats()
	s.Timers.TimerGroup = q.stats.Timers.TimerGroup // upstream adds to what was measured so far
	q.up, q.stats = up, *s
	return up.Exec(ctx)
}

// Run calls fn under the limits of the query, once the query is admitted. Its context ends with
// asked, at the timeout, when the query has read too many bytes, and by Cancel. The error is one
// that upstream's API answers as upstream's engine's, and counted if it is a limit's.
func (q *Query) Run(asked context.Context, fn func(ctx context.Context) error) error {
	e := q.engine
	if q.piece != nil {
		return e.admit(asked, q, e.pieces, min(e.settings.MaxFetchedBytes, q.piece.MaxBytes), fn)
	}
	return e.admit(asked, q, e.gate, e.settings.MaxFetchedBytes, fn)
}

// begin is called before the query waits for its turn. It returns the budget of its results.
func (q *Query) begin(ctx context.Context, cancel context.CancelFunc) (*request.ResultBudget, error) {
	q.mu.Lock()
	q.cancel = cancel
	q.mu.Unlock()
	s, c := &q.engine.settings, countSteps(&q.asked)
	if limit := s.MaxSubquerySteps; c.steps > limit {
		return nil, &request.LimitError{Limit: "steps of subqueries", Value: limit, Needed: c.steps, Flag: subqueryFlag}
	}
	b := request.NewResultBudget(s.QueryMemoryBytes, q.expr.growth, c.most)
	if err := b.Add(ctx, 1, 0); err != nil { // a query without data has series as well
		return nil, err
	}
	return b, memory.Of(ctx).Charge(c.steps * bytesPerSubqueryStep)
}

// classified gives an error the type by which upstream's API answers it. For an ended context, this
// is the error of the limit that ended it.
func (e *Engine) classified(asked, ctx context.Context, err error) error {
	var limit interface {
		error
		QueryLimit() bool
	}
	const where = "query execution"
	cause := context.Cause(ctx)
	var failed *failedRead
	var ended *request.EndedError
	if cause != nil && errors.As(err, &failed) {
		err = failed.err // because the context ended
	}
	switch {
	case errors.As(err, &limit), cause == nil:
		return err
	case errors.As(cause, &limit):
		return cause
	case errors.As(cause, &ended):
		return fmt.Errorf("%w: %w", promql.ErrQueryCanceled(where), ended)
	case isPromQL(err):
	case errors.Is(cause, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", promql.ErrQueryTimeout(where), err)
	default:
		err = fmt.Errorf("%w: %w", promql.ErrQueryCanceled(where), err)
	}
	if asked.Err() == nil && errors.Is(cause, context.DeadlineExceeded) {
		return request.TooLong(e.settings.Timeout, err)
	}
	return err
}

// isPromQL reports whether upstream's API knows the type of an error.
func isPromQL(err error) bool {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		storage  promql.ErrStorage
		samples  promql.ErrTooManySamples
	)
	return errors.As(err, &canceled) || errors.As(err, &timeout) || errors.As(err, &storage) || errors.As(err, &samples)
}
