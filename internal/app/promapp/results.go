package promapp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// results is the memory of what the groups of a tenant have found: upstream's groups keep the
// series of the samples of their last evaluations, and alerts, also after they are resolved. A rule
// that goes beyond a limit fails.
type results struct {
	charge func(bytes int64) error // of the tenant and the process; gives negative ones back

	mu sync.Mutex
	of map[string]int64 // bytes by group
}

const (
	// The memory in bytes of a result besides its labels, and how many times an alert takes that of
	// its labels, about.
	resultBytes = 256
	alertTimes  = 4
	// resolvedRetention is how long upstream keeps an alert that is resolved.
	resolvedRetention = 15 * time.Minute
)

type growing struct{}

// growth is what an evaluation has found so far.
type growth struct {
	bytes atomic.Int64
	full  error // the limit that alerts of former evaluations exceed
}

// begin begins an evaluation of a group at a time: its results replace the former ones, beside the
// alerts that it keeps. end ends it. Without results, nothing is counted.
func (r *results) begin(ctx context.Context, g *rules.Group, at time.Time) (_ context.Context, end func()) {
	if r == nil {
		return ctx, func() {}
	}
	group := rules.GroupKey(g.File(), g.Name())
	n := &growth{full: r.settle(group, kept(g, at), 0)}
	return context.WithValue(ctx, growing{}, n), func() {
		found := n.bytes.Load()
		_ = r.settle(group, found+kept(g, at), found) // the next evaluation meets the limit again
	}
}

// kept is the memory of the alerts of a group that stay without being found again in an evaluation
// at a time, and of the annotations of all.
func kept(g *rules.Group, at time.Time) (bytes int64) {
	for _, rule := range g.Rules() {
		alerting, ok := rule.(*rules.AlertingRule)
		if !ok {
			continue
		}
		alerting.ForEachActiveAlert(func(a *rules.Alert) {
			since, stay := a.KeepFiringSince, alerting.KeepFiringFor()
			if !a.ResolvedAt.IsZero() {
				since, stay = a.ResolvedAt, resolvedRetention
			}
			switch {
			case since.IsZero(): // it was found in the last evaluation
				bytes += int64(a.Annotations.ByteSize())
			case at.Sub(since) <= stay:
				bytes += alertTimes*(resultBytes+int64(a.Labels.ByteSize())) + int64(a.Annotations.ByteSize())
			}
		})
	}
	return bytes
}

// settle makes bytes the memory of a group, of which some are charged beside what it had. If a
// limit does not admit more, that stays.
func (r *results) settle(group string, bytes, charged int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.of[group] + charged
	err := r.charge(bytes - had)
	if err != nil {
		bytes = had
	}
	if r.of[group] = bytes; bytes == 0 {
		delete(r.of, group)
	}
	return err
}

// forget gives back the memory of the groups that are not among some.
func (r *results) forget(but []*rules.Group) {
	stay := map[string]bool{}
	for _, g := range but {
		stay[rules.GroupKey(g.File(), g.Name())] = true
	}
	r.mu.Lock()
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(r.of)), func(k string) bool { return stay[k] })
	r.mu.Unlock()
	for _, k := range gone {
		_ = r.settle(k, 0, 0) // giving back does not fail
	}
}

// add counts the results of a rule in the evaluation of the context.
func (r *results) add(ctx context.Context, v promql.Vector) error {
	n, ok := ctx.Value(growing{}).(*growth)
	if !ok || len(v) == 0 {
		return nil
	}
	if n.full != nil {
		return n.full
	}
	bytes := int64(0)
	for _, s := range v {
		bytes += resultBytes + int64(s.Metric.ByteSize())
	}
	if rules.FromOriginContext(ctx).Kind == rules.KindAlerting {
		bytes *= alertTimes
	}
	if err := r.charge(bytes); err != nil {
		return err
	}
	n.bytes.Add(bytes)
	return nil
}
