package compact

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

// What a planner that is asked every minute remembers, so that tenants of whom nothing is new cost little: at 43,200 ticks a month, one
// listing a tick is 0.22 dollars. Nothing depends on it: a planner that remembers nothing, or wrong things, plans later, and never falsely.
const (
	tenantsEvery = 4 * time.Minute  // for each tenant, the tenants are listed
	tenantsAtAll = 10 * time.Minute // but at least so often
	quietEvery   = 3 * time.Minute  // a tenant is looked at of whom there was nothing to do and no segment
	collectEvery = 5 * time.Minute  // garbage of a tenant is collected
)

// memory belongs to one stage.
type memory struct {
	mu      sync.Mutex
	tenants []string
	listed  time.Time
	seen    map[string]seen
}

// seen is what the last look at a tenant found.
type seen struct {
	at      time.Time
	state   State
	quiet   bool // no job was planned, and no segment waits for one
	garbage bool // something is superseded for long enough to be deleted or forgotten

	collected time.Time // when garbage was last collected
}

// recall returns what is remembered of a tenant.
func (m *memory) recall(tenant string) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[tenant]
}

func (m *memory) change(tenant string, f func(*seen)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.seen[tenant]
	f(&x)
	m.seen[tenant] = x
}

// known returns the tenants, listed now or not long ago.
func (s *Stage) known(ctx context.Context) ([]string, error) {
	now := s.now()
	if tenants, ok := s.memory.list(now); ok {
		return tenants, nil
	}
	tenants, err := catalog.Tenants(ctx, s.store)
	if err == nil {
		s.memory.learn(tenants, now)
	}
	return tenants, err
}

// list returns the tenants if they were listed not long ago.
func (m *memory) list(now time.Time) ([]string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	age := now.Sub(m.listed)
	return m.tenants, age >= 0 && age < min(tenantsAtAll, time.Duration(len(m.tenants))*tenantsEvery)
}

// learn keeps the tenants, which are sorted, and forgets all others.
func (m *memory) learn(tenants []string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tenants, m.listed = tenants, now
	for t := range m.seen {
		if _, ok := slices.BinarySearch(tenants, t); !ok {
			delete(m.seen, t)
		}
	}
}

// survey plans for the tenants that may have something to do. State is that of all, as far as it is
// remembered. stored is a time of the store's clock before the call; this process's own clock only
// tells how long ago it looked at a tenant.
func (s *Stage) survey(ctx context.Context, stored time.Time, tenants []string, errs *failures) (sum State, work []Work, looked int) {
	plans, looks := make([][]Job, len(tenants)), make([]bool, len(tenants))
	s.eachTenant(ctx, tenants, func(i int, tenant string) {
		now := s.now()
		if x := s.memory.recall(tenant); x.quiet && now.Sub(x.at) < quietEvery && !now.Before(x.at) {
			return
		}
		snap, err := catalog.Take(ctx, s.store, tenant, key.MinTime, key.MaxTime)
		if err != nil {
			errs.add(ctx, tenant, err)
			return
		}
		plans[i], looks[i] = Plan(s.set, stored, snap), true
		s.memory.change(tenant, func(x *seen) {
			x.at, x.state = now, StateOf(s.set, stored, snap)
			x.quiet, x.garbage = len(plans[i]) == 0 && len(snap.Segments) == 0, s.superseded(&snap.Manifest, stored)
		})
	})
	for i, t := range tenants {
		sum.add(s.memory.recall(t).state)
		for _, j := range plans[i] {
			work = append(work, Work{t, j})
		}
		if looks[i] {
			looked++
		}
	}
	return sum, work, looked
}

// superseded says whether something is old enough to be deleted, or to be forgotten. That history is as old may still be missing.
func (s *Stage) superseded(m *catalog.Manifest, now time.Time) bool {
	due := now.Add(-max(s.set.DeletionDelay, 0)).UnixMilli()
	return slices.ContainsFunc(m.Consumed, func(c catalog.Consumed) bool { return c.At <= due }) ||
		slices.ContainsFunc(m.Retired, func(r catalog.Retired) bool { return r.At <= due })
}

// collectDue says whether the tenant is worth a collection now: it has garbage, or it is time to search for orphans. Only jobs make orphans, so
// those of a quiet tenant are searched for when the last one is old enough to be taken for one.
func (s *Stage) collectDue(tenant string) bool {
	x, now := s.memory.recall(tenant), s.now()
	if x.at.IsZero() || now.Sub(x.collected) < collectEvery {
		return false
	}
	pause := s.set.OrphanGrace
	if !x.quiet {
		pause /= 4
	}
	s.mu.Lock()
	scanned := s.scanned[tenant]
	s.mu.Unlock()
	return x.garbage || now.Sub(scanned) >= pause
}
