package query

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/tenant"
)

// pushedQuery implements promql.Query. Upstream's query, of the same text, is made at once, so that it says what is wrong with the text. Exec
// changes its statement to what is left to evaluate, and lets it do so.
type pushedQuery struct {
	promql.Query
	engine *engine
	stage  *Stage           // nil: nothing is pushed down
	view   *view            // what upstream's query reads
	stmt   *parser.EvalStmt // upstream's, which it evaluates
	asked  parser.EvalStmt  // as it was asked

	mu     sync.Mutex
	cancel context.CancelFunc // while the query runs
}

// Statement implements promql.Query.
func (q *pushedQuery) Statement() parser.Statement { return &q.asked }

// Cancel implements promql.Query.
func (q *pushedQuery) Cancel() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel != nil {
		q.cancel()
	}
}

// Exec implements promql.Query.
func (q *pushedQuery) Exec(asked context.Context) *promql.Result {
	ctx, cancel := q.limited(asked)
	defer cancel()
	total := q.Stats().Timers.GetTimer(stats.ExecTotalTime).Start()
	ctx, err := q.allow(ctx)
	if err != nil {
		return &promql.Result{Err: q.explain(asked, ctx, err)}
	}
	if err := q.enter(ctx); err != nil {
		return &promql.Result{Err: q.explain(asked, ctx, err)}
	}
	defer q.engine.gate.leave()
	notes, err := q.push(ctx)
	if err == nil {
		err = q.walkable()
	}
	total.Stop()
	if err != nil {
		return &promql.Result{Err: q.explain(asked, ctx, err)}
	}
	defer q.view.release()
	res := q.Query.Exec(q.view.share(ctx))
	if res.Err == nil {
		if err := answered(ctx, res); err != nil {
			res = &promql.Result{Err: err}
		}
	}
	if res.Err != nil {
		res.Err = q.explain(asked, ctx, res.Err)
	}
	res.Warnings.Merge(notes)
	return res
}

// limited returns the context in which a query runs: it ends with the one that it was asked in, at the timeout, when it has read too many bytes, and
// by Cancel.
func (q *pushedQuery) limited(asked context.Context) (context.Context, context.CancelFunc) {
	s := &q.engine.stage.settings
	counted, stop := context.WithCancelCause(asked)
	r := request.From(asked)
	r.Bytes = request.NewByteBudget(s.MaxFetchedBytes, stop)
	ctx, cancel := context.WithTimeout(q.engine.stage.files.Sharing(request.With(counted, r)), s.Timeout)
	q.mu.Lock()
	q.cancel = cancel
	q.mu.Unlock()
	return ctx, func() {
		cancel()
		stop(nil)
	}
}

// enter waits until the query may run.
func (q *pushedQuery) enter(ctx context.Context) error {
	e := q.engine
	queue := q.Stats().Timers.GetTimer(stats.ExecQueueTime).Start()
	e.stage.metrics.Waiting.Inc()
	err := e.gate.enter(ctx, tenant.From(ctx))
	e.stage.metrics.Waiting.Dec()
	queue.Stop()
	if err != nil {
		return fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", e.gate.size, err)
	}
	return nil
}

// explain makes an error one that upstream's API answers as upstream's engine's, and counts it if
// it is a limit's. Of an ended context it says which limit ended it.
func (q *pushedQuery) explain(asked, ctx context.Context, err error) error {
	err = q.explained(asked, ctx, err)
	q.engine.stage.metrics.Limited(err)
	return err
}

func (q *pushedQuery) explained(asked, ctx context.Context, err error) error {
	var limit interface {
		error
		QueryLimit() bool
	}
	const where = "query execution"
	cause := context.Cause(ctx)
	var failed *failedRead
	if cause != nil && errors.As(err, &failed) {
		err = failed.err // because the context ended
	}
	switch {
	case errors.As(err, &limit), cause == nil:
		return err
	case errors.As(cause, &limit):
		return cause
	case isPromQL(err):
	case errors.Is(cause, context.DeadlineExceeded):
		err = fmt.Errorf("%w: %w", promql.ErrQueryTimeout(where), err)
	default:
		err = fmt.Errorf("%w: %w", promql.ErrQueryCanceled(where), err)
	}
	if asked.Err() == nil && errors.Is(cause, context.DeadlineExceeded) {
		return request.TooLong(q.engine.stage.settings.Timeout, err)
	}
	return err
}

// isPromQL says that upstream's API knows what an error is.
func isPromQL(err error) bool {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		storage  promql.ErrStorage
		samples  promql.ErrTooManySamples
	)
	return errors.As(err, &canceled) || errors.As(err, &timeout) || errors.As(err, &storage) || errors.As(err, &samples)
}
