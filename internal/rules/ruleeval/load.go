// Package ruleeval evaluates rules at past times with upstream's groups. Time is virtual: the rules
// of a file see what was stored, and what they would have written themselves if they had been
// evaluated live.
//
//	files ─▶ rules ─▶ parts in the order of what they read ─▶ for each: evaluations ─▶ Memory
//
// A part is one rule, or rules that must be evaluated together, time after time, because they read
// one another or write the same series. A rule that is a part of its own is evaluated by range
// queries if its expression has the same result there.
package ruleeval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Files are rule files, and what a server would add to them.
type Files struct {
	Paths          []string // as the server names them: they determine when a group is evaluated
	Interval       time.Duration
	QueryOffset    time.Duration // of groups that name none
	Lookback       time.Duration // of selectors
	ExternalLabels labels.Labels
	ExternalURL    string
	Parser         parser.Parser
}

// Rules are the rules of some files.
type Rules struct {
	files  Files
	groups []*group
	all    []*Rule // by group
}

// group is a group of rules.
type group struct {
	*rules.Group // for its times only
	place        int
}

// Rule is a rule of a group.
type Rule struct {
	group    *group
	index    int // in the group
	name     string
	record   string // "": it is an alerting rule
	expr     parser.Expr
	text     string // of expr
	labels   labels.Labels
	alerting *rules.AlertingRule // as it was loaded; nil: a recording rule
	reads    []read
	ranged   bool
}

// Load reads the rules of files.
func Load(f Files) (*Rules, error) {
	loaded, errs := ruletemplate.Limits{}.Load(&rules.ManagerOptions{
		Context: context.Background(), Logger: slog.New(slog.DiscardHandler), Parser: f.Parser,
		DefaultRuleQueryOffset: func() time.Duration { return f.QueryOffset },
	}, f.Interval, f.ExternalLabels, f.ExternalURL, false, f.Paths)
	if errs != nil {
		return nil, fmt.Errorf("read rules: %w", errors.Join(errs...))
	}
	out := &Rules{files: f}
	for i, g := range loaded {
		out.groups = append(out.groups, &group{g, i})
	}
	for _, g := range out.groups {
		for i, upstream := range g.Rules() {
			r := &Rule{group: g, index: i, name: upstream.Name(), expr: upstream.Query(), text: upstream.Query().String(), labels: upstream.Labels()}
			if a, ok := upstream.(*rules.AlertingRule); ok {
				r.alerting = a
			} else {
				r.record = r.name
			}
			r.reads, r.ranged = analyze(r.expr, f.Lookback)
			out.all = append(out.all, r)
		}
	}
	return out, nil
}

// make returns a rule of upstream's without state. An alerting rule writes its series from the
// first evaluation on.
func (r *Rule) make(f *Files) rules.Rule {
	if r.alerting == nil {
		return rules.NewRecordingRule(r.record, r.expr, r.labels)
	}
	a := r.alerting
	return rules.NewAlertingRule(r.name, r.expr, a.HoldDuration(), a.KeepFiringFor(), r.labels, a.Annotations(), f.ExternalLabels, f.ExternalURL, true, slog.New(slog.DiscardHandler))
}

// Recording returns the recording rules.
func (rs *Rules) Recording() []*Rule {
	return slices.DeleteFunc(slices.Clone(rs.all), func(r *Rule) bool { return r.record == "" })
}

// Alerting returns the alerting rules of a name; "" is all of them.
func (rs *Rules) Alerting(name string) []*Rule {
	return slices.DeleteFunc(slices.Clone(rs.all), func(r *Rule) bool { return r.record != "" || name != "" && r.name != name })
}

// Interval is the time between two evaluations of the rule.
func (r *Rule) Interval() time.Duration { return r.group.Group.Interval() }

// Name is the name of the metric or of the alert.
func (r *Rule) Name() string { return r.name }

// Group returns the file and the name of the rule's group.
func (r *Rule) Group() (file, name string) { return r.group.File(), r.group.Name() }

// ID tells the rule apart from the others of its group.
func (r *Rule) ID() string { return strconv.Itoa(r.index) }

// String describes everything that determines what the rule writes.
func (r *Rule) String() string {
	return fmt.Sprintf("%q %q %s %d %s %d %s %s", r.group.File(), r.group.Name(), r.Interval(), r.group.Limit(), r.group.QueryOffset(), r.index, r.labels, r.make(&Files{}))
}

// first returns the first time of an evaluation that is not before t.
func (g *group) first(t time.Time) time.Time {
	at := g.EvalTimestamp(t.UnixNano())
	if at.Before(t) {
		at = at.Add(g.Group.Interval())
	}
	return at
}
