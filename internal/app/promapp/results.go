package promapp

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
)

// results is the memory of what the groups of a tenant have found in their last evaluations:
// upstream's groups keep the series of their samples, and alerts. A rule that goes beyond a limit
// fails.
type results struct {
	charge func(bytes int64) error // of the tenant and the process; gives negative ones back

	mu sync.Mutex
	of map[string]int64 // bytes by group
}

// The memory in bytes of a result besides its labels, and how many times an alert takes that of its
// labels, about.
const (
	resultBytes = 256
	alertTimes  = 4
)

type growing struct{}

// begin begins an evaluation of a group, whose results replace the former ones. end ends it. Without
// results, nothing is counted.
func (r *results) begin(ctx context.Context, group string) (_ context.Context, end func()) {
	if r == nil {
		return ctx, func() {}
	}
	n := &atomic.Int64{}
	r.replace(group, 0)
	return context.WithValue(ctx, growing{}, n), func() { r.replace(group, n.Load()) }
}

// replace gives back the memory of the former results of a group. That of the new ones is charged.
func (r *results) replace(group string, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.charge(-r.of[group]) // giving back does not fail
	delete(r.of, group)
	if bytes > 0 {
		r.of[group] = bytes
	}
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
		r.replace(k, 0)
	}
}

// add counts the results of a rule in the evaluation of the context.
func (r *results) add(ctx context.Context, v promql.Vector) error {
	n, ok := ctx.Value(growing{}).(*atomic.Int64)
	if !ok || len(v) == 0 {
		return nil
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
	n.Add(bytes)
	return nil
}
