package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/request"
)

// admission is what a kind of query does on its way to its turn.
type admission struct {
	gate  *gate // where it takes its turn
	bytes int64 // of objects that it may read
	// begin is called before the query waits, with what ends it. It returns what limits its
	// results.
	begin func(ctx context.Context, cancel context.CancelFunc) (*request.ResultBudget, error)
	// wait measures the time until the query's turn.
	wait func() (stop func())
}

// Run calls fn under the limits of a query that is not PromQL: it takes its turn among the PromQL
// queries of all tenants, and its context ends at the same timeout and byte limit. PromQL queries
// that fn runs with its context are part of it: they neither wait nor have limits of bytes of their
// own. Errors are as those of Query.Run.
func (e *Engine) Run(asked context.Context, fn func(ctx context.Context) error) error {
	return e.admit(asked, admission{
		gate: e.gate, bytes: e.settings.MaxFetchedBytes,
		begin: func(context.Context, context.CancelFunc) (*request.ResultBudget, error) {
			return request.From(asked).Results, nil
		},
		wait: func() (stop func()) { return func() {} },
	}, fn)
}

func (e *Engine) admit(asked context.Context, a admission, fn func(ctx context.Context) error) (err error) {
	s, x := &e.settings, e.exec
	counted, stop := context.WithCancelCause(asked)
	defer stop(nil)
	r := request.From(asked)
	inside := r.Inside
	if r.Inside = true; !inside {
		r.Bytes = request.NewByteBudget(a.bytes, stop)
	}
	ctx, cancel := counted, func() { stop(nil) }
	if end, ok := asked.Deadline(); !ok || time.Until(end) > s.Timeout {
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	defer func() {
		if err != nil {
			err = e.classified(asked, ctx, err)
			x.Metrics.Limited(err)
		}
	}()
	if r.Results, err = a.begin(ctx, cancel); err != nil {
		return err
	}
	if !inside {
		r.Leave = sync.OnceFunc(func() { a.gate.leave(tenant.From(ctx)) })
	}
	allowed := x.Files.Sharing(request.With(ctx, r))
	if inside {
		return fn(allowed)
	}
	stopWaiting := a.wait()
	x.Metrics.Waiting.Inc()
	err = a.gate.enter(ctx, tenant.From(ctx))
	x.Metrics.Waiting.Dec()
	stopWaiting()
	if err != nil {
		return fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", a.gate.size, err)
	}
	defer r.Leave()
	return fn(allowed)
}
