package promapp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/prom/spool"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Querying answers the queries of rules.
type Querying interface {
	storage.Queryable
	Engine() promql.QueryEngine
	// KeepRecent announces many queries of the samples of a tenant's last minutes.
	KeepRecent(tenant string)
}

// evaluating is what the rule managers of all tenants share.
type evaluating struct {
	set    Settings
	query  Querying
	queue  *spool.Spool
	pace   *pace
	url    *url.URL // of links
	offset func() time.Duration
	scheme model.ValidationScheme
	parser parser.Parser
	logger *slog.Logger
	now    func() time.Time
	memory *memory.Budget // of the process

	dependencies dependencies // of the first manager
	answer       rules.QueryFunc
	templates    *ruletemplate.Guard
	concurrency  rules.RuleConcurrencyController // of the first manager; bounds the rules of all
}

// ruling is upstream's rule manager of a tenant over the query stage.
type ruling struct {
	*evaluating

	manager *rules.Manager
	cancel  context.CancelFunc
	done    chan struct{} // closed when the manager has ended
	started bool
	tenant  string
	results *results // nil: they are not counted

	mu         sync.Mutex
	iterations map[*rules.Group]context.CancelFunc // under way
}

// ruling returns the rule manager of a tenant, which does not evaluate anything yet. Its results go
// to an appendable, and its alerts to notify. load reads its groups.
func (e *evaluating) ruling(id string, to storage.Appendable, notify rules.NotifyFunc, load rules.GroupLoader, met *rules.Metrics) *ruling {
	ctx, cancel := context.WithCancel(tenant.With(context.Background(), id))
	r := &ruling{evaluating: e, cancel: cancel, done: make(chan struct{}), tenant: id, iterations: map[*rules.Group]context.CancelFunc{}}
	options := &rules.ManagerOptions{
		NameValidationScheme: e.scheme, ExternalURL: e.url, QueryFunc: e.templates.Around(r.evaluate), NotifyFunc: notify, Context: ctx,
		Appendable: to, Queryable: e.query, Logger: e.logger, Metrics: met,
		OutageTolerance: e.set.OutageTolerance, ForGracePeriod: e.set.GracePeriod, ResendDelay: e.set.ResendDelay,
		DefaultRuleQueryOffset: e.offset, MaxConcurrentEvals: e.set.MaxConcurrency, ConcurrentEvalsEnabled: e.set.MaxConcurrency > 1,
		RuleConcurrencyController: e.concurrency, Parser: e.parser, GroupLoader: load,
	}
	r.manager = rules.NewManager(options)
	if e.concurrency == nil { // updates of tenants read both at the same time
		e.concurrency, e.dependencies = options.RuleConcurrencyController, dependencies{options.RuleDependencyController, e.parser}
	}
	options.RuleDependencyController = e.dependencies
	return r
}

// update replaces the groups by those of the files, which the loader reads. Groups that did not
// change go on. It waits for evaluations of those that it replaces; after replaceWait all that are
// under way are cancelled.
func (r *ruling) update(interval time.Duration, external labels.Labels, files []string) error {
	defer time.AfterFunc(replaceWait, func() { r.end(func(string, string) bool { return true }) }).Stop()
	link := r.url.String()
	err := r.manager.Update(interval, files, external, link, func(ctx context.Context, g *rules.Group, at time.Time) {
		r.iterate(ruletemplate.Begin(ctx, &ruletemplate.Evaluation{Rules: g.Rules(), At: at, ExternalLabels: external, Link: link, URL: r.url}), g, at)
	})
	groups := r.manager.RuleGroups()
	if len(groups) > 0 {
		r.query.KeepRecent(r.tenant)
	}
	r.pace.note(r, shortest(groups, (*rules.Group).Interval))
	return err
}

const (
	// maxWait bounds the time for which rules wait for samples that are not stored yet.
	maxWait = 10 * time.Second
	// replaceWait bounds the time for which changed groups wait for evaluations of those that they
	// replace.
	replaceWait = 10 * time.Second
	// cancelWait bounds the time for which the end of the process waits for evaluations that were
	// cancelled.
	cancelWait = time.Second
)

// iterate evaluates a group once. The rules see what was committed before, because it is stored
// then, and because their reads begin afterwards.
func (r *ruling) iterate(ctx context.Context, g *rules.Group, at time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	ctx, end := r.results.begin(ctx, g, at)
	r.mu.Lock()
	r.iterations[g] = cancel
	r.mu.Unlock()
	defer func() {
		end()
		r.mu.Lock()
		delete(r.iterations, g)
		r.mu.Unlock()
		cancel()
	}()
	rules.DefaultEvalIterationFunc(r.fresh(ctx, r.queue.Sync), g, at)
}

// end cancels the evaluations under way of groups that are chosen by file and name.
func (r *ruling) end(chosen func(file, group string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g, cancel := range r.iterations {
		if chosen(g.File(), g.Name()) {
			cancel()
		}
	}
}

// fresh returns a context whose reads see everything that was committed until now, for which it
// waits by sync. While the store is away they see what is stored.
func (r *ruling) fresh(ctx context.Context, sync func(context.Context) error) context.Context {
	wait, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := sync(wait); err != nil && ctx.Err() == nil {
		r.logger.Warn("rules do not see the latest samples", "err", err)
	}
	return query.WithSince(ctx, r.now())
}

// evaluate evaluates the expression of a rule. A rule that depends on another one of its group
// waits for the other's result.
func (r *ruling) evaluate(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
	if rule := rules.FromOriginContext(ctx); rule.Name != "" && !rule.NoDependencyRules {
		ctx = r.fresh(ctx, r.queue.SyncSoon)
	}
	v, err := r.answer(ctx, expr, at)
	if err == nil {
		err = r.results.add(ctx, v)
	}
	return v, err
}

func (r *ruling) start() {
	r.started = true
	go func() {
		defer close(r.done)
		r.manager.Run()
	}()
}

// stop ends the evaluation of rules; those under way are finished, or cancelled when ctx ends.
func (r *ruling) stop(ctx context.Context) error {
	defer r.cancel()
	if !r.started {
		return nil
	}
	go r.manager.Stop()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		r.cancel()
	}
	select {
	case <-r.done:
	case <-time.After(cancelWait):
	}
	return fmt.Errorf("end the evaluation of rules: %w", ctx.Err())
}
