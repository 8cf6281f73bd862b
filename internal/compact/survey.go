package compact

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Advisory cache that avoids listing idle tenants: at 43,200 ticks a month, one listing per tick
// costs 0.22 dollars. A stale or empty entry delays a plan, and never makes one wrong.
const (
	tenantsEvery = 4 * time.Minute  // for each tenant, the tenants are listed
	tenantsAtAll = 10 * time.Minute // but at least so often
	quietEvery   = 3 * time.Minute  // between two plans for an idle tenant without segments
	collectEvery = 5 * time.Minute  // garbage of a tenant is collected
)

// memo is what a stage remembers of tenants.
type memo struct {
	mu      sync.Mutex
	tenants []string
	listed  time.Time
	seen    map[string]seen
}

// seen is what the last plan for a tenant found.
type seen struct {
	at      time.Time
	state   plan.State
	quiet   bool // no job was planned, and no segment waits for one
	garbage bool // something is superseded for long enough to be deleted or forgotten

	collected time.Time // when garbage was last collected
	scanned   time.Time // when the blocks were last searched for orphans
	answers   time.Time // when kept answers were last listed, by the store's clock
}

// recall returns the cached state of a tenant.
func (m *memo) recall(tenant string) seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[tenant]
}

func (m *memo) change(tenant string, f func(*seen)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.seen[tenant]
	f(&x)
	m.seen[tenant] = x
}

// tenants returns the tenants: listed, or from the cache unless they are to be every one.
func (s *Stage) tenants(ctx context.Context, now time.Time, every bool) ([]string, error) {
	m := &s.memory
	m.mu.Lock()
	tenants, age := m.tenants, now.Sub(m.listed)
	m.mu.Unlock()
	if !every && age >= 0 && age < min(tenantsAtAll, time.Duration(len(tenants))*tenantsEvery) {
		return tenants, nil
	}
	tenants, err := catalog.Tenants(ctx, s.store)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tenants, m.listed = tenants, now
	maps.DeleteFunc(m.seen, func(t string, _ seen) bool {
		_, ok := slices.BinarySearch(tenants, t)
		return !ok
	})
	return tenants, nil
}

// survey plans for the tenants: every one, or those that may have something to do. State sums up
// all tenants, as far as the cache has them. stored is a time of the store's clock before the call;
// now, of the process's own clock, only measures the age of cache entries.
func (s *Stage) survey(ctx context.Context, now, stored time.Time, tenants []string, every bool, errs *failures) (sum plan.State, work []Work, checked int) {
	plans, planned := make([][]plan.Job, len(tenants)), make([]bool, len(tenants))
	s.eachTenant(ctx, tenants, errs, func(i int, tenant string) error {
		if x := s.memory.recall(tenant); !every && x.quiet && now.Sub(x.at) < quietEvery && !now.Before(x.at) {
			return nil
		}
		snap, err := catalog.Take(ctx, s.store, tenant, key.MinTime, key.MaxTime)
		if err != nil {
			return err
		}
		plans[i], planned[i] = plan.Jobs(s.policy(tenant), stored, snap), true
		s.memory.change(tenant, func(x *seen) {
			x.at, x.state = now, plan.StateOf(s.set.Policy, stored, snap)
			if tenant != s.set.OwnTenant {
				x.state.Arrived = plan.Arrived(s.set.QueuedWrites, stored, snap)
			}
			x.quiet, x.garbage = len(plans[i]) == 0 && len(snap.Segments) == 0, s.superseded(&snap.Manifest, stored)
		})
		return nil
	})
	for i, t := range tenants {
		sum.Add(s.memory.recall(t).state)
		for _, j := range plans[i] {
			work = append(work, Work{Tenant: t, Job: j})
		}
		if planned[i] {
			checked++
		}
	}
	return sum, work, checked
}

// superseded reports whether an object is old enough to be deleted, or to be forgotten. It does not
// check that the history is as old.
func (s *Stage) superseded(m *catalog.Manifest, now time.Time) bool {
	due := now.Add(-max(s.set.DeletionDelay, 0)).UnixMilli()
	return slices.ContainsFunc(m.Consumed, func(c catalog.Consumed) bool { return c.At <= due }) ||
		slices.ContainsFunc(m.Retired, func(r catalog.Retired) bool { return r.At <= due })
}

// collectDue reports whether a collection for the tenant is worth its requests: it has garbage, or
// it is time to search for orphans. Only jobs make orphans, so a quiet tenant is searched when the
// orphans of its last job have reached OrphanGrace.
func (s *Stage) collectDue(tenant string) bool {
	x, now := s.memory.recall(tenant), s.now()
	if x.at.IsZero() || now.Sub(x.collected) < collectEvery {
		return false
	}
	pause := s.set.OrphanGrace
	if !x.quiet {
		pause /= 4
	}
	return x.garbage || now.Sub(x.scanned) >= pause
}
