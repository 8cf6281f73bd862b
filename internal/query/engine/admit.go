package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/tenant"
)

// admission is what a kind of query does on its way to its turn.
type admission struct {
	// begin is called before the query waits, with what ends it.
	begin func(ctx context.Context, cancel context.CancelFunc) (context.Context, error)
	// wait measures the time until the query's turn.
	wait func() (stop func())
}

// Run calls fn under the limits of a query that is not PromQL: it takes its turn among the PromQL
// queries of all tenants, and its context ends at the same timeout and byte limit. PromQL queries
// that fn runs with its context are part of it: they neither wait nor have limits of bytes of their
// own. Errors are as those of Query.Run.
func (e *Engine) Run(asked context.Context, fn func(ctx context.Context) error) error {
	return e.admit(asked, admission{
		begin: func(ctx context.Context, _ context.CancelFunc) (context.Context, error) { return ctx, nil },
		wait:  func() (stop func()) { return func() {} },
	}, fn)
}

func (e *Engine) admit(asked context.Context, a admission, fn func(ctx context.Context) error) (err error) {
	s, x := &e.settings, e.exec
	counted, stop := context.WithCancelCause(asked)
	defer stop(nil)
	r := request.From(asked)
	inside := r.Inside
	if r.Inside = true; !inside {
		r.Bytes = request.NewByteBudget(s.MaxFetchedBytes, stop)
	}
	ctx, cancel := x.Files.Sharing(request.With(counted, r)), func() { stop(nil) }
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
	allowed, err := a.begin(ctx, cancel)
	if err != nil || inside {
		if err == nil {
			err = fn(allowed)
		}
		return err
	}
	stopWaiting := a.wait()
	x.Metrics.Waiting.Inc()
	err = e.gate.enter(ctx, tenant.From(ctx))
	x.Metrics.Waiting.Dec()
	stopWaiting()
	if err != nil {
		return fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", e.gate.size, err)
	}
	defer e.gate.leave(tenant.From(ctx))
	return fn(allowed)
}
