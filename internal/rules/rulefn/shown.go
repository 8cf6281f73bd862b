package rulefn

import (
	"context"
	"errors"

	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

// Shown returns the groups that a tenant has set, ascending by namespace and name, as they were
// after their last evaluations, which any invocation may have made: it reads the rules, and the
// state of each group. All rules of a group whose state is damaged are shown with that error.
func (r *Runner) Shown(ctx context.Context, tenant string) ([]*v1.RuleGroup, error) {
	t, err := r.current(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]*v1.RuleGroup, len(t.groups))
	return out, telemetry.Each(ctx, requests, t.groups, func(ctx context.Context, i int, g *group) error {
		state, _, err := rulestate.Read(ctx, r.Store, tenant, g.Namespace(), g.Name())
		if err != nil && !errors.Is(err, rulestate.ErrState) {
			return err
		}
		if err != nil {
			state = &rulestate.Group{}
		}
		out[i] = g.Group.Shown(state, err)
		return nil
	})
}
