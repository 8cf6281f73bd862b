package promapp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/promconfig"
	"github.com/promlake/promlake/internal/rulestore"
)

// ruleStore is the part of a store that has the rules of tenants.
type ruleStore interface {
	objstore.Getter
	objstore.Lister
}

const (
	// updates is the number of tenants whose changed rules are read at once.
	updates = 8
	// pollTimeout bounds the listing and reading of changed rules.
	pollTimeout = time.Minute
)

// tenantRules evaluates the rules that tenants have set. One listing of the store shows whose rules
// have changed; only those are read.
type tenantRules struct {
	*evaluating

	store  ruleStore
	to     func(tenant string) storage.Appendable
	notify func(tenant string) rules.NotifyFunc
	reg    prometheus.Registerer
	met    *tenantMetrics
	logger *slog.Logger

	wake    chan struct{} // capacity 1: rules have changed
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	all      map[string]*owner // by tenant; none is ever removed
	interval time.Duration     // of groups without one
	external labels.Labels
	applied  uint64 // configurations
}

// owner is a tenant that has, or had, rules. Its fields are used by one update at a time; the
// manager is safe for concurrent use.
type owner struct {
	*ruling

	loader  *tenantLoader
	etag    string // in the listing for which the rules were loaded; "": there was no object
	applied uint64 // configuration with which they are loaded
	failed  bool   // the rules could not be loaded
}

func newTenantRules(e *evaluating, store ruleStore, to func(string) storage.Appendable, notify func(string) rules.NotifyFunc, reg prometheus.Registerer, logger *slog.Logger) (*tenantRules, error) {
	met, err := newTenantMetrics(reg)
	if err != nil {
		return nil, err
	}
	return &tenantRules{
		evaluating: e, store: store, to: to, notify: notify, reg: reg, met: met, logger: logger,
		wake: make(chan struct{}, 1), all: map[string]*owner{},
	}, nil
}

// apply makes a configuration the current one for the groups of all tenants.
func (t *tenantRules) apply(c *promconfig.Config) {
	t.mu.Lock()
	t.interval, t.external = time.Duration(c.GlobalConfig.EvaluationInterval), c.GlobalConfig.ExternalLabels
	t.applied++
	t.mu.Unlock()
	t.changed()
}

// changed lets the rules be looked at soon.
func (t *tenantRules) changed() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// start begins to evaluate.
func (t *tenantRules) start() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.running.Go(func() {
		tick := time.NewTicker(t.set.PollInterval)
		defer tick.Stop()
		for {
			t.poll(ctx)
			select {
			case <-t.wake:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// stop ends the evaluation of all tenants' rules. Their series do not become stale: a process that
// follows continues them.
func (t *tenantRules) stop(ctx context.Context) error {
	if t.cancel == nil {
		return nil
	}
	t.cancel()
	// A poll waits for the evaluations of the groups that it replaces.
	defer context.AfterFunc(ctx, t.cancelEvaluations)()
	t.running.Wait()
	var g errgroup.Group
	errs := make([]error, len(t.all))
	i := 0
	for _, o := range t.all {
		at := i
		g.Go(func() error { errs[at] = o.stop(ctx); return nil })
		i++
	}
	return errors.Join(g.Wait(), errors.Join(errs...))
}

func (t *tenantRules) cancelEvaluations() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.all {
		o.ruling.cancel()
	}
}

// poll loads the rules that have changed. What cannot be read stays as it was until the next poll.
func (t *tenantRules) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	etags := map[string]string{}
	for l, err := range rulestore.List(ctx, t.store) {
		if err != nil {
			t.met.polls.WithLabelValues("failed").Inc()
			if ctx.Err() == nil {
				t.logger.Warn("the rules of tenants cannot be listed; those that are known go on", "err", err)
			}
			return
		}
		etags[l.Tenant] = l.ETag
	}
	t.met.polls.WithLabelValues("ok").Inc()
	t.mu.Lock()
	for id := range t.all {
		if _, listed := etags[id]; !listed {
			etags[id] = "" // an operator removed the tenant
		}
	}
	t.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(updates)
	for id, etag := range etags {
		g.Go(func() error { t.refresh(ctx, id, etag); return nil })
	}
	_ = g.Wait() // refresh reports errors itself
	t.met.count(t)
}

// refresh loads the rules of a tenant unless they are those that are loaded.
func (t *tenantRules) refresh(ctx context.Context, id, etag string) {
	t.mu.Lock()
	o, interval, external, applied := t.all[id], t.interval, t.external, t.applied
	t.mu.Unlock()
	if o != nil && o.etag == etag && o.applied == applied && !o.failed {
		return
	}
	now, _, err := rulestore.Read(ctx, t.store, id)
	if err == nil && o != nil && o.loader.rules.Load().ID == now.ID && o.applied == applied && !o.failed {
		o.etag = etag // of bytes that are loaded: the object changed between a listing and its read
		return
	}
	if err == nil && o == nil {
		if now.Groups() == 0 {
			return
		}
		o = t.add(id)
	}
	if err == nil {
		before := o.loader.rules.Swap(&now)
		names := make([]string, 0, len(now.Namespaces))
		for _, ns := range now.Namespaces {
			names = append(names, ns.Name)
		}
		if err = o.update(interval, external, names); err != nil {
			o.loader.rules.Store(before)
		}
	}
	if err == nil {
		o.etag, o.applied, o.failed = etag, applied, false
		t.logger.Info("loaded the rules of a tenant", "tenant", id, "generation", now.Generation, "groups", now.Groups())
		return
	}
	if ctx.Err() != nil {
		return
	}
	t.met.failures.Inc()
	if o == nil || !o.failed {
		t.logger.Error("the rules of a tenant cannot be loaded; those that are loaded stay", "tenant", id, "err", err)
	}
	if o != nil {
		o.failed = true
	}
}

// add returns a new owner whose groups are evaluated as soon as they are loaded.
func (t *tenantRules) add(id string) *owner {
	loader := &tenantLoader{parser: t.parser}
	loader.rules.Store(&rulestore.Rules{})
	// Mimir's names, with Promlake's prefix: the metrics without it are those of rule_files.
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"tenant": id}, prometheus.WrapRegistererWithPrefix("promlake_", t.reg))
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &owner{ruling: t.ruling(id, t.to(id), t.notify(id), loader, reg), loader: loader}
	o.start()
	t.all[id] = o
	return o
}

// manager returns what evaluates the rules that a tenant has set, or nil.
func (t *tenantRules) manager(id string) *rules.Manager {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.all[id]; o != nil {
		return o.ruling.manager
	}
	return nil
}
