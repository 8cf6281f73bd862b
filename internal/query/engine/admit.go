package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/auth"
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
	var run *request.Running
	if r.Inside = true; !inside {
		r.Bytes = request.NewByteBudget(bytes, stop)
		var done func()
		run, done = e.track(asked, &r, q, stop)
		defer done()
		r.Leave = sync.OnceFunc(func() { run.Leave(); at.leave(run.Tenant) })
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
			if limit, ok := errors.AsType[*request.LimitError](err); ok && limit.Cost && r.Origin != nil {
				r.Origin.Refused.Store(limit)
			}
		}
	}()
	if q != nil {
		if r.Results, err = q.begin(ctx, cancel); err != nil {
			return err
		}
	}
	if !inside {
		r.Idle = func(fn func()) { at.idle(ctx, run.Tenant, fn) }
	}
	allowed := x.Files.Sharing(request.With(ctx, r))
	if inside {
		return fn(allowed)
	}
	if q == nil || q.piece == nil { // else the process that divides the query has checked it
		if err := e.allowed(asked, run); err != nil {
			return err
		}
	}
	queue := &stats.Timer{}
	if q != nil {
		queue = q.stats.Timers.GetTimer(stats.ExecQueueTime)
	}
	queue.Start()
	x.Metrics.Waiting.Inc()
	err = at.enter(ctx, run.Tenant)
	x.Metrics.Waiting.Dec()
	queue.Stop()
	if err != nil {
		return fmt.Errorf("wait for one of %d concurrent queries (--query.max-concurrency): %w", at.size, err)
	}
	run.Begin()
	defer r.Leave()
	return fn(allowed)
}

// allowed returns an error if the tenant or the token of a query has used up its allowance.
func (e *Engine) allowed(ctx context.Context, run *request.Running) error {
	if e.settings.Allowance == nil || run.Origin == nil {
		return nil
	}
	for _, id := range tenant.All(ctx) {
		of := e.settings.Allowance(tenant.With(ctx, id))
		if of == (auth.Allowance{}) && run.Allowance == (auth.Allowance{}) {
			continue
		}
		if err := e.usage.Within(ctx, id, of, run.Token, run.Allowance); err != nil {
			return err
		}
	}
	return nil
}

// Track calls fn, lists the request of asked among the queries meanwhile, and accounts for what fn
// takes. fn has no turn among the queries. If an allowance is used up, Track returns that error and
// does not call fn.
func (e *Engine) Track(asked context.Context, fn func(ctx context.Context)) error {
	ctx, stop := context.WithCancelCause(asked)
	defer stop(nil)
	r := request.From(asked)
	run, done := e.track(asked, &r, nil, stop)
	defer done()
	if err := e.allowed(asked, run); err != nil {
		e.exec.Metrics.Limited(err)
		return err
	}
	run.Begin()
	fn(request.With(ctx, r))
	return nil
}

// track lists q, or the request r if q is nil, among the queries. done ends that and accounts for
// what the query took. If r belongs to a query that is listed, track does neither.
func (e *Engine) track(ctx context.Context, r *request.Request, q *Query, stop context.CancelCauseFunc) (run *request.Running, done func()) {
	run = &request.Running{Origin: r.Origin, Tenant: tenant.From(ctx)}
	if r.Took != nil {
		return run, func() {}
	}
	if run.Origin == nil {
		run.Origin = &request.Origin{Source: request.Source{Kind: request.Client, Name: "promlake"}}
		if origin, ok := ctx.Value(promql.QueryOrigin{}).(map[string]any); ok { // as upstream's rules set it
			if group, ok := origin["ruleGroup"].(map[string]string); ok {
				run.Source = request.Source{Kind: request.RuleGroup, Name: group["file"] + ";" + group["name"]}
			}
		}
	}
	run.Text = run.Origin.Text
	if q != nil {
		run.Text, run.Start, run.End, run.Step = q.text, timestamp.FromTime(q.asked.Start), timestamp.FromTime(q.asked.End), q.asked.Interval.Milliseconds()
	}
	r.Origin, r.Took = run.Origin, &run.Took
	remove := e.Queries.Add(ctx, run, stop)
	return run, func() {
		run.Leave()
		remove()
		run.Origin.Took.Add(&run.Took)
		e.usage.Spend(run, (q == nil || q.piece == nil) && !run.Part.Load())
	}
}
