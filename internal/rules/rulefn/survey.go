package rulefn

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// group is a group with the key of its state.
type group struct {
	*Group

	key  string
	gone bool // the tenant has removed it: its series end
}

// tick is the time between two ticks.
const tick = time.Minute

// maxKept bounds the bytes of memory of rules that are kept for the next tick.
const maxKept = 128 << 20

// tenantRules are the groups of a tenant.
type tenantRules struct {
	etag   string // of the object
	bytes  int64  // of memory
	groups []*group
	ended  bool // no state of a removed group is left to be ended
}

// survey returns the groups that are due at a time, tenant by tenant, in the order of the tenants'
// keys, and what went wrong.
func (r *Runner) survey(ctx context.Context, at time.Time) (all []work, errs []error) {
	for l, err := range rulestore.List(ctx, r.Store) {
		if err != nil {
			return all, append(errs, err)
		}
		w := work{tenant: l.Tenant, etag: l.ETag}
		t, err := r.load(ctx, l.Tenant, l.ETag)
		if err != nil {
			errs = append(errs, w.wrap(err))
			continue
		}
		for _, g := range t.groups {
			// The state of a group is read within the time of catching up, since an evaluation may
			// not be made, and once in each such time after it, since notifications may not be
			// sent.
			after := at.Sub(g.Last(at))
			if after < r.set.CatchUp || after%r.set.CatchUp < tick {
				w.groups = append(w.groups, g)
			}
		}
		gone, err := r.removed(ctx, l.Tenant, t)
		if err != nil {
			errs = append(errs, w.wrap(err))
		}
		if w.groups = append(w.groups, gone...); len(w.groups) > 0 {
			all = append(all, w)
		}
	}
	return all, errs
}

// load returns the groups of a tenant whose rules have the version etag, or a later one. A group
// that cannot be parsed is left out.
func (r *Runner) load(ctx context.Context, tenant, etag string) (*tenantRules, error) {
	if t := r.loaded(tenant, etag); t != nil {
		return t, nil
	}
	return r.current(ctx, tenant)
}

// loaded returns the groups of a tenant if this version is loaded, else nil.
func (r *Runner) loaded(tenant, etag string) *tenantRules {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tenants[tenant]; t != nil && t.etag == etag {
		return t
	}
	return nil
}

// current returns the groups that a tenant has in the store now, as load does.
func (r *Runner) current(ctx context.Context, tenant string) (*tenantRules, error) {
	doc, etag, err := rulestore.Read(ctx, r.Store, tenant)
	if err != nil {
		return nil, err
	}
	if etag == "" { // nobody has ever set rules
		return &tenantRules{}, nil
	}
	if t := r.loaded(tenant, etag); t != nil {
		return t, nil
	}
	t := &tenantRules{etag: etag}
	for _, ns := range doc.Namespaces {
		for _, g := range ns.Groups {
			var one *Group
			err := errors.Join(r.set.Limits.Names(ns.Name, g), r.set.Limits.Memory(t.bytes+g.Bytes()))
			if err == nil {
				t.bytes += g.Bytes()
				one, err = Compile(r.options, ns.Name, g)
			}
			if err != nil { // the API has checked it, perhaps as another version
				r.met.groups.WithLabelValues("invalid").Inc()
				r.Logger.ErrorContext(ctx, "a rule group cannot be evaluated", "tenant", tenant, "err", err)
				continue
			}
			t.groups = append(t.groups, &group{Group: one, key: key.RuleState(tenant, ns.Name, g.Name)})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.tenants[tenant]; old != nil {
		r.kept -= old.bytes
	}
	r.tenants[tenant] = t
	r.kept += t.bytes
	for id, other := range r.tenants { // whichever goes is read again when it is due
		if r.kept > maxKept && id != tenant {
			delete(r.tenants, id)
			r.kept -= other.bytes
		}
	}
	return t, nil
}

// removed returns the groups without rules whose states have series that must end, because the
// tenant has removed the groups. States are listed when the rules have changed, and once by each
// process. A state that cannot be read is an error beside the groups.
func (r *Runner) removed(ctx context.Context, tenant string, t *tenantRules) (out []*group, err error) {
	r.mu.Lock()
	ended := t.ended
	r.mu.Unlock()
	if ended {
		return nil, nil
	}
	known := map[string]bool{}
	for _, g := range t.groups {
		known[g.key] = true
	}
	var errs []error
	for obj, err := range r.Store.List(ctx, key.RuleStatesOf(tenant), "") {
		if err != nil {
			return out, notify.Few(append(errs, err))
		}
		if _, _, err := key.ParseRuleState(obj.Key); err != nil || known[obj.Key] {
			continue
		}
		s, _, err := rulestate.ReadKey(ctx, r.Store, obj.Key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if s.Idle() {
			continue
		}
		one, err := Compile(r.options, s.Namespace, rulestore.Group{Name: s.Name})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, &group{Group: one, key: obj.Key, gone: true})
	}
	if len(out) == 0 && len(errs) == 0 {
		r.mu.Lock()
		t.ended = true
		r.mu.Unlock()
	}
	return out, notify.Few(errs)
}

// moment is one evaluation of a group.
type moment struct {
	at    time.Time
	group int // index in the run
}

// moments returns the evaluations of groups that are due at a time, in the order in which
// Prometheus would make them, and the number of those that are too old. evaluated are the times of
// the last evaluations, zero before the first, which is the latest that is due.
func moments(groups []*group, evaluated []time.Time, at time.Time, catchUp time.Duration) (out []moment, missed []int64) {
	missed = make([]int64, len(groups))
	for i, g := range groups {
		for last := g.Last(at); last.After(evaluated[i]); last = last.Add(-g.Interval()) {
			if at.Sub(last) >= catchUp {
				if !evaluated[i].IsZero() {
					missed[i] = int64((last.Sub(evaluated[i])-1)/g.Interval()) + 1
				}
				break
			}
			out = append(out, moment{last, i})
			if evaluated[i].IsZero() || g.gone {
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b moment) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.group, b.group)) })
	return out, missed
}
