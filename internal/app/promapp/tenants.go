package promapp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/objstore"
)

// ruleStore is the part of a store that has the rules of tenants.
type ruleStore interface {
	objstore.Getter
	objstore.Lister
}

const (
	// updates is the number of tenants whose changed rules are read at once.
	updates = 8
	// pollTimeout bounds the listing of rules, and the reading of those of a tenant.
	pollTimeout = time.Minute
)

// tenantRules evaluates the rules that tenants have set. One listing of the store shows whose rules
// have changed; only those are read.
type tenantRules struct {
	*evaluating

	store  ruleStore
	to     func(tenant string) storage.Appendable
	notify func(tenant string) rules.NotifyFunc
	met    *tenantMetrics
	logger *slog.Logger

	wake    chan struct{} // capacity 1: rules have changed
	cancel  context.CancelFunc
	running sync.WaitGroup

	slots    *semaphore.Weighted // of updates
	mu       sync.Mutex
	all      map[string]*owner // by tenant; none is ever removed
	room     room
	turned   map[string]turned // tenants without an owner, since there is no room for one
	updating map[string]bool   // tenants with an update under way, and whether another one must follow
	interval time.Duration     // of groups without one
	external labels.Labels
	applied  uint64 // configurations
}

// owner is a tenant that has, or had, rules. Its fields are used by one update at a time; the
// manager is safe for concurrent use.
type owner struct {
	*ruling

	loader  *tenantLoader
	id      ulid.ULID // of the loaded rules
	etag    string    // in the listing for which the rules were loaded; "": there was no object
	applied uint64    // configuration with which they are loaded
	failed  bool      // the rules could not be loaded

	// guarded by tenantRules.mu
	held    int64 // bytes of the room for the groups
	found   int64 // bytes of the room for their results
	groups  int   // that are evaluated
	refused refusals
}

// turned are rules of a tenant for which there is no room.
type turned struct {
	etag    string
	refused refusals
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
	ended := make(chan struct{})
	go func() { t.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done(): // an update waits for evaluations, which are cancelled now
	}
	t.mu.Lock()
	all := slices.Collect(maps.Values(t.all))
	t.mu.Unlock()
	errs := make([]error, len(all))
	var g errgroup.Group
	for i, o := range all {
		g.Go(func() error { errs[i] = o.stop(ctx); return nil })
	}
	_ = g.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// poll begins to load the rules that have changed. What cannot be read stays as it was until the
// next poll. It waits for no tenant.
func (t *tenantRules) poll(ctx context.Context) {
	listing, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	etags := map[string]string{}
	for l, err := range rulestore.List(listing, t.store) {
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
	defer t.mu.Unlock()
	for id := range t.turned {
		if _, listed := etags[id]; !listed {
			delete(t.turned, id)
		}
	}
	for id := range t.all {
		if _, listed := etags[id]; !listed {
			etags[id] = "" // an operator removed the tenant
		}
	}
	for id, etag := range etags {
		if _, busy := t.updating[id]; busy {
			t.updating[id] = true
		} else if last, again := t.loaded(id); again || last != etag {
			t.updating[id] = false
			t.running.Go(func() { t.update(ctx, id, etag) })
		}
	}
	t.met.count(t)
}

// loaded returns for which object in a listing the rules of a tenant were loaded, as far as there
// was room, and whether they must be loaded again though that has not changed: the configuration
// has, a load failed, or other groups have given back room that some of theirs lacked. The caller
// locks, and no update of the tenant is under way but its own.
func (t *tenantRules) loaded(id string) (etag string, again bool) {
	was, ok := t.turned[id]
	if o := t.all[id]; o != nil {
		was, ok = turned{o.etag, o.refused}, o.applied == t.applied && !o.failed
	}
	return was.etag, !ok || was.refused.full && was.refused.freed != t.room.freed
}

// update loads the rules of a tenant in its turn.
func (t *tenantRules) update(ctx context.Context, id, etag string) {
	if t.slots.Acquire(ctx, 1) == nil {
		t.refresh(ctx, id, etag)
		t.slots.Release(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met.count(t)
	if t.updating[id] {
		t.changed()
	}
	delete(t.updating, id)
}

// refresh loads the rules of a tenant unless the store has those that are loaded.
func (t *tenantRules) refresh(ctx context.Context, id, etag string) {
	t.mu.Lock()
	o, interval, external, applied := t.all[id], t.interval, t.external, t.applied
	_, again := t.loaded(id)
	t.mu.Unlock()
	read, cancel := context.WithTimeout(ctx, pollTimeout) // what is parsed afterwards is never parsed in vain
	defer cancel()
	now, _, err := rulestore.Read(read, t.store, id)
	if err == nil && o != nil && !again && o.id == now.ID {
		o.etag = etag // of bytes that are loaded: the object changed between a listing and its read
		return
	}
	if err == nil && o == nil {
		if o = t.add(id, etag, now); o == nil {
			return
		}
	}
	if err == nil {
		err = t.load(ctx, o, now, interval, external)
	}
	if err == nil {
		o.etag, o.applied, o.failed = etag, applied, false
		t.logger.Info("loaded the rules of a tenant", "tenant", id, "generation", now.Generation, "groups", o.groups)
		if n := o.refused.count; n > 0 {
			t.logger.Warn("rule groups of a tenant are not evaluated", "tenant", id, "groups", n, "err", o.refused.some[0].err)
		}
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

// load makes the groups of a document the evaluated ones, as far as they fit.
func (t *tenantRules) load(ctx context.Context, o *owner, doc rulestore.Rules, interval time.Duration, external labels.Labels) error {
	groups, refused, bytes, err := t.fitting(ctx, o, doc)
	if err != nil {
		return err
	}
	before := o.loader.groups
	o.loader.groups, o.id = groups, doc.ID
	t.mu.Lock()
	o.held = bytes
	t.mu.Unlock()
	o.end(func(namespace, group string) bool { // nobody needs the results of a group that is gone
		return !slices.ContainsFunc(groups[namespace], func(c *compiled) bool { return c.Name == group })
	})
	t.met.updating.Inc()
	err = o.update(interval, external, slices.Sorted(maps.Keys(groups)))
	t.met.updating.Dec()
	if err != nil {
		o.loader.groups, o.id = before, ulid.ULID{}
		return err
	}
	o.ruling.results.forget(o.ruling.manager.RuleGroups())
	t.mu.Lock()
	defer t.mu.Unlock()
	o.groups, o.refused = doc.Groups()-refused.count, refused
	return nil
}

// add returns a new owner whose groups are evaluated as soon as they are loaded, or nil if there are
// none, or no room for one.
func (t *tenantRules) add(id, etag string, doc rulestore.Rules) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	if doc.Groups() == 0 {
		delete(t.turned, id)
		return nil
	}
	freed := t.room.freed
	err := t.room.take(ownerBytes)
	if err == nil {
		if err = t.memory.TryAcquire(ownerBytes); err != nil {
			t.room.held -= ownerBytes
			freed-- // the next poll tries again
		}
	}
	if err != nil {
		no := refusals{full: true, freed: freed}
		no.add(doc.Namespaces[0].Name, doc.Namespaces[0].Groups[0], err)
		no.count = doc.Groups()
		if _, known := t.turned[id]; !known {
			t.logger.Warn("rule groups of a tenant are not evaluated", "tenant", id, "groups", no.count, "err", err)
		}
		t.turned[id] = turned{etag, no}
		return nil
	}
	delete(t.turned, id)
	loader := &tenantLoader{}
	o := &owner{ruling: t.ruling(id, t.to(id), t.notify(id), loader, t.met.of(id)), loader: loader}
	o.ruling.results = &results{charge: func(n int64) error { return t.charge(o, n) }, of: map[string]int64{}}
	o.start()
	t.all[id] = o
	return o
}

// charge takes bytes for results of a tenant's rules, or gives -n back.
func (t *tenantRules) charge(o *owner, n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n <= 0 {
		o.found, t.room.held = o.found+n, t.room.held+n
		t.memory.Release(-n)
		return nil
	}
	if err := t.set.Limits.Memory(o.held + o.found + n); err != nil {
		return err
	}
	if err := t.room.take(n); err != nil {
		return err
	}
	if err := t.memory.TryAcquire(n); err != nil {
		t.room.held -= n
		return err
	}
	o.found += n
	return nil
}

// retriever returns the groups that a tenant has set, or nil if there are none.
func (t *tenantRules) retriever(id string) *listed {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.all[id]; o != nil {
		return &listed{managers: []*rules.Manager{o.ruling.manager}, refused: o.refused}
	}
	if no, ok := t.turned[id]; ok {
		return &listed{refused: no.refused}
	}
	return nil
}
