package rulefn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Options are what the groups of all tenants share.
type Options struct {
	Parser      parser.Parser
	Interval    time.Duration // of groups that name none
	QueryOffset time.Duration // of groups that name none
	ResendDelay time.Duration // least time before an alert is sent again
	// OutageTolerance and GracePeriod are those of upstream's groups, for alerts that continue.
	OutageTolerance, GracePeriod time.Duration
	ExternalURL                  *url.URL // in templates
	// ExternalLabels are those of templates. Senders add them to notifications.
	ExternalLabels labels.Labels
	// Link returns where users see the results of an expression, for notifications.
	Link      func(expr string) string
	MaxSeries int // that the rules of a group may write at one time
	// Retry reports whether a query failed for a reason that passes, such as a store that is away.
	// Then the evaluation has no result, and is to be repeated.
	Retry func(error) bool
	// Templates bound what the templates of alerting rules do. nil: with the default limits.
	Templates *ruletemplate.Guard
	Now       func() time.Time // measures evaluations; their results do not depend on it
	Logger    *slog.Logger

	metrics *rules.Metrics // of upstream's groups, which only know their times here
}

// Group is a rule group that can be evaluated. It has no state and is safe for concurrent use.
type Group struct {
	opts      *Options
	namespace string
	group     rulestore.Group
	offset    time.Duration
	rules     []rule
	times     *rules.Group
}

// rule is one rule of a group.
type rule struct {
	rulestore.Rule
	key    string // name and labels
	expr   *expression.Text
	labels labels.Labels
}

// Compile returns a group that a tenant has set. An error names the rule that cannot be parsed.
func Compile(o *Options, namespace string, g rulestore.Group) (*Group, error) {
	if o.metrics == nil {
		return nil, fmt.Errorf("compile rule group %q: the options were not prepared", g.Name)
	}
	out := &Group{opts: o, namespace: namespace, group: g, offset: o.QueryOffset}
	if g.QueryOffset != nil {
		out.offset = time.Duration(*g.QueryOffset)
	}
	if out.group.Interval == 0 {
		out.group.Interval = model.Duration(o.Interval)
	}
	for i, r := range g.Rules {
		expr, err := o.Parser.ParseExpr(r.Expr)
		if err != nil {
			return nil, fmt.Errorf("rule %d of group %q of namespace %q: %w", i+1, g.Name, namespace, err)
		}
		one := rule{Rule: r, expr: expression.TextOf(expr), labels: rules.FromMaps(g.Labels, r.Labels)}
		one.key = one.name() + one.labels.String()
		out.rules = append(out.rules, one)
	}
	out.times = rules.NewGroup(rules.GroupOptions{
		Name: g.Name, File: namespace, Interval: out.Interval(), Opts: &rules.ManagerOptions{Metrics: o.metrics, Logger: o.Logger},
	})
	return out, nil
}

// Prepare completes options for Compile.
func (o *Options) Prepare() {
	o.metrics = rules.NewGroupMetrics(nil)
	if o.Templates == nil {
		o.Templates = ruletemplate.NewGuard(ruletemplate.Limits{}, nil)
	}
}

// Namespace is the namespace of the group.
func (g *Group) Namespace() string { return g.namespace }

// Name is the name of the group.
func (g *Group) Name() string { return g.group.Name }

// Len is the number of rules.
func (g *Group) Len() int { return len(g.rules) }

// Interval is the time between two evaluations.
func (g *Group) Interval() time.Duration { return time.Duration(g.group.Interval) }

// Last returns the time of the last evaluation that is due at t. The times are those of Prometheus:
// they depend on the names of namespace and group, and on the interval.
func (g *Group) Last(t time.Time) time.Time { return g.times.EvalTimestamp(t.UnixNano()) }

func (r *rule) name() string {
	if r.Alert != "" {
		return r.Alert
	}
	return r.Record
}

// Shown returns the group as upstream's API shows it after the evaluation that left the state, with
// rules of the types v1.AlertingRule and v1.RecordingRule. Where a program has left no time of the
// clock, the time of the last evaluation is that of the schedule, and it took 0. A rule that was
// not evaluated yet has the health "unknown". All rules have the error failed, unless it is nil.
func (g *Group) Shown(state *rulestate.Group, failed error) *v1.RuleGroup {
	states, known, _ := g.adopt(state)
	out := &v1.RuleGroup{
		Name: g.group.Name, File: g.namespace, Interval: g.Interval().Seconds(), Limit: g.group.Limit,
		EvaluationTime: state.EvaluationTime, LastEvaluation: lastEvaluation(state.Measured, state),
	}
	for i, r := range g.rules {
		last, one := states[i], v1.RecordingRule{Name: r.name(), Query: r.expr.String(), Labels: r.labels, Health: rules.HealthUnknown, Type: "recording"}
		if known[i] {
			one.Health, one.EvaluationTime, one.LastEvaluation = rules.HealthGood, last.EvaluationTime, lastEvaluation(last.Measured, state)
		}
		if failed != nil {
			last.Error = failed.Error()
		}
		if one.LastError = last.Error; last.Error != "" {
			one.Health = rules.HealthBad
		}
		if r.Alert == "" {
			out.Rules = append(out.Rules, one)
			continue
		}
		alerting := v1.AlertingRule{
			Name: one.Name, Query: one.Query, Labels: one.Labels, Health: one.Health, LastError: one.LastError, EvaluationTime: one.EvaluationTime, LastEvaluation: one.LastEvaluation,
			Type: "alerting", State: rules.StateUnknown.String(), Alerts: []*v1.Alert{},
			Duration: time.Duration(r.For).Seconds(), KeepFiringFor: time.Duration(r.KeepFiringFor).Seconds(), Annotations: labels.FromMap(r.Annotations),
		}
		if known[i] {
			alerting.State = rules.StateInactive.String()
		}
		for _, a := range last.Alerts {
			if a.State == rulestate.Resolved {
				continue
			}
			if alerting.State != rulestate.Firing {
				alerting.State = a.State
			}
			alert := &v1.Alert{Labels: a.Labels, Annotations: a.Annotations, State: a.State, ActiveAt: &a.ActiveAt, Value: strconv.FormatFloat(float64(a.Value), 'e', -1, 64)}
			if !a.KeepFiringSince.IsZero() {
				alert.KeepFiringSince = &a.KeepFiringSince
			}
			alerting.Alerts = append(alerting.Alerts, alert)
		}
		out.Rules = append(out.Rules, alerting)
	}
	return out
}

// lastEvaluation is when an evaluation of the group, or of one of its rules, took place.
func lastEvaluation(m rulestate.Measured, state *rulestate.Group) time.Time {
	if m.LastEvaluation.IsZero() {
		return state.Evaluated
	}
	return m.LastEvaluation
}

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
