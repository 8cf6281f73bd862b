package rulefn

import (
	"context"
	"errors"

	promrules "github.com/prometheus/prometheus/rules"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/rulestate"
)

// Shown are the rule groups of a tenant, ascending by namespace and name, as upstream's API asks
// for them.
type Shown []*promrules.Group

// RuleGroups returns the groups.
func (s Shown) RuleGroups() []*promrules.Group { return s }

// AlertingRules returns the alerting rules of all groups.
func (s Shown) AlertingRules() (out []*promrules.AlertingRule) {
	for _, g := range s {
		out = append(out, g.AlertingRules()...)
	}
	return out
}

// Shown returns the groups that a tenant has set, as they were after their last evaluations, which
// any invocation may have made: it reads the rules, and the state of each group. All rules of a
// group whose state is damaged are shown with that error.
func (r *Runner) Shown(ctx context.Context, tenant string) (Shown, error) {
	t, err := r.current(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make(Shown, len(t.groups))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(requests)
	for i, g := range t.groups {
		all.Go(func() error {
			state, _, err := rulestate.Read(ctx, r.Store, tenant, g.Namespace(), g.Name())
			switch {
			case err == nil:
				out[i], err = g.Group.Shown(state)
			case errors.Is(err, rulestate.ErrState):
				out[i], err = g.Group.ShownFailed(err)
			}
			return err
		})
	}
	return out, all.Wait()
}
