package promapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

const (
	// roomShare is the inverse of the part of the process's memory that the rules of all tenants may
	// keep.
	roomShare = 4
	// ownerBytes is the memory of a tenant with rules, about, besides its groups.
	ownerBytes = 64 << 10
	// maxShown is the number of refused groups of a tenant that are shown.
	maxShown = 10
)

// room is the memory that the rules of all tenants may keep. The caller locks.
type room struct {
	limit int64  // bytes; 0: there is none
	held  int64  // bytes
	freed uint64 // times that bytes were given back
}

// take takes bytes, or returns a *rulestore.LimitError.
func (r *room) take(n int64) error {
	if r.limit > 0 && r.held+n > r.limit {
		return &rulestore.LimitError{Name: "process", What: "bytes of memory of the rule groups of all tenants", Got: r.held + n, Max: r.limit, Flag: "a quarter of " + memory.Flag}
	}
	r.held += n
	return nil
}

// refusals are the groups of a tenant that are not evaluated.
type refusals struct {
	count int
	some  []refusal // as many as are shown
	full  bool      // the process had no room for some
	freed uint64    // of the room, at that time
}

// refusal is a group that is not evaluated, and why.
type refusal struct {
	namespace, group, rule string
	err                    error
}

func (r *refusals) add(namespace string, g rulestore.Group, err error) {
	if r.count++; r.count > maxShown {
		return
	}
	one := refusal{namespace: cut(namespace), group: cut(g.Name), err: fmt.Errorf("the rule group is not evaluated: %w", err)}
	if len(g.Rules) > 0 {
		one.rule = cut(g.Rules[0].Record + g.Rules[0].Alert)
	}
	r.some = append(r.some, one)
}

// cut returns the beginning of a name that may be too long.
func cut(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// shown returns the groups as upstream's API shows them: with one rule, which has the error.
func (r *refusals) shown() (out []*rules.Group) {
	if len(r.some) == 0 {
		return nil
	}
	o := &rules.ManagerOptions{Metrics: rules.NewGroupMetrics(nil), Logger: slog.New(slog.DiscardHandler)}
	for _, one := range r.some {
		rule := rules.NewRecordingRule(one.rule, expression.TextOf(&parser.StringLiteral{}), labels.EmptyLabels())
		rule.SetHealth(rules.HealthBad)
		rule.SetLastError(one.err)
		out = append(out, rules.NewGroup(rules.GroupOptions{Name: one.group, File: one.namespace, Rules: []rules.Rule{rule}, Opts: o}))
	}
	return out
}

// fitting compiles the groups of a document that the limits admit, in their order, and takes their
// memory in place of that of the owner's former groups. After an error, which also says that the
// process is at its memory limit now, nothing has changed.
func (t *tenantRules) fitting(ctx context.Context, o *owner, doc rulestore.Rules) (groups map[string][]*compiled, refused refusals, bytes int64, err error) {
	t.mu.Lock()
	t.room.held -= o.held
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err != nil {
			t.room.held += o.held - bytes
			t.memory.Release(bytes)
			return
		}
		t.memory.Release(o.held)
		if bytes < o.held {
			t.room.freed++
		}
		refused.freed = t.room.freed
	}()
	groups = map[string][]*compiled{}
	for _, ns := range doc.Namespaces {
		for _, g := range ns.Groups {
			n := g.Bytes()
			wrong := errors.Join(t.set.Limits.Names(ns.Name, g), t.set.Limits.Memory(bytes+n))
			if wrong == nil {
				if err = t.memory.TryAcquire(n); err != nil {
					return nil, refused, bytes, err
				}
				t.mu.Lock()
				wrong = t.room.take(n)
				t.mu.Unlock()
				if wrong != nil {
					t.memory.Release(n)
					refused.full = true
				}
			}
			if wrong != nil {
				refused.add(ns.Name, g, wrong)
				continue
			}
			bytes += n
			one := o.loader.compiled(ns.Name, g)
			if one == nil {
				err = telemetry.Guard(func() (err error) {
					one, err = t.compile(ctx, g)
					return err
				})()
			}
			if err != nil {
				return nil, refused, bytes, fmt.Errorf("namespace %q, group %q: %w", ns.Name, g.Name, err)
			}
			groups[ns.Name] = append(groups[ns.Name], one)
		}
	}
	return groups, refused, bytes, nil
}
