package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/request"
)

// Run calls fn under the limits of a query that is not PromQL: it takes its turn among the PromQL
// queries of all tenants, and its context ends at the same timeout and byte limit. PromQL queries
// that fn runs with its context are part of it: they neither wait nor have limits of bytes of their
// own. Errors are as those of Query.Run.
func (e *Engine) Run(asked context.Context, fn func(ctx context.Context) error) error {
	return e.admit(asked, nil, e.gate, e.settings.MaxFetchedBytes, fn)
}

// admit calls fn once it has a place of a gate, for q or, if that is nil, for a query that is not
// PromQL. bytes are those of objects that it may read.
func (e *Engine) admit(asked context.Context, q *Query, at *gate, bytes int64, fn func(ctx context.Context) error) (err error) {
	s, x := &e.settings, e.exec
	counted, stop := context.WithCancelCause(asked)
	defer stop(nil)
	r := request.From(asked)
	inside := r.Inside
	if r.Inside = true; !inside {
		r.Bytes = request.NewByteBudget(bytes, stop)
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
	if q != nil {
		if r.Results, err = q.begin(ctx, cancel); err != nil {
			return err
		}
	}
	if !inside {
		r.Leave = sync.OnceFunc(func() { at.leave(tenant.From(ctx)) })
	}
	allowed := x.Files.Sharing(request.With(ctx, r))
	if inside {
		return fn(allowed)
	}
	queue := &stats.Timer{}
	if q != nil {
		queue = q.stats.Timers.GetTimer(stats.ExecQueueTime)
	}
	queue.Start()
	x.Metrics.Waiting.Inc()
	err = at.enter(ctx, tenant.From(ctx))
	x.Metrics.Waiting.Dec()
	queue.Stop()
	if err != nil {
		return fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", at.size, err)
	}
	defer r.Leave()
	return fn(allowed)
}
