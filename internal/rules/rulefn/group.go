package rulefn

import (
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/prom/expression"
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
