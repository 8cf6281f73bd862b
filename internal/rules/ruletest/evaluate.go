package ruletest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nsf/jsondiff"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Limits of a query in a test.
const (
	maxSamples = 50_000_000 // that it holds at any moment
	timeout    = 100 * time.Second
)

// evaluation is a test that runs: upstream's groups and engine over its samples.
type evaluation struct {
	*test
	*runner
	store    *store
	engine   *promql.Engine
	interval time.Duration
	fuzzy    bool
	groups   []*rules.Group
}

// run evaluates the rules from the origin to the last expectation, and compares.
func (e *evaluation) run(files []string, order map[string]int) []error {
	due, err := e.due()
	if err != nil {
		return []error{err}
	}
	if errs := e.load(files, order); len(errs) > 0 {
		return errs
	}
	ctx := context.Background()
	var failures []error
	end := e.origin().Add(e.last())
	for at := e.origin(); !at.After(end); at = at.Add(e.interval) {
		if err := e.store.until(ctx, at); err != nil {
			failures = append(failures, err)
		} else if failed := e.evaluate(ctx, at); len(failed) > 0 {
			return append(failures, failed...)
		}
		// An expectation between two evaluations is about the earlier one.
		next := at.Add(e.interval).Sub(e.origin())
		for len(due) > 0 && time.Duration(due[0].EvalTime) < next {
			if err := e.compareAlerts(due[0]); err != nil {
				failures = append(failures, err)
			}
			due = due[1:]
		}
	}
	for i := range e.Expressions {
		if err := e.compareSamples(ctx, &e.Expressions[i]); err != nil {
			failures = append(failures, err)
		}
	}
	if e.Debug {
		e.dump(ctx)
	}
	return failures
}

// due returns the expectations about alerts in the order of time.
func (e *evaluation) due() ([]*alertCase, error) {
	out := make([]*alertCase, len(e.Alerts))
	for i := range e.Alerts {
		out[i] = &e.Alerts[i]
		if out[i].Name == "" {
			in := ""
			if e.Name != "" {
				in = fmt.Sprintf(" (in TestGroup %s)", e.Name)
			}
			return nil, fmt.Errorf("an item under alert_rule_test misses required attribute alertname at eval_time %v%s", out[i].EvalTime, in)
		}
	}
	slices.SortStableFunc(out, func(a, b *alertCase) int { return cmp.Compare(a.EvalTime, b.EvalTime) })
	return out, nil
}

// evaluate evaluates every group once and returns the errors of rules.
func (e *evaluation) evaluate(ctx context.Context, at time.Time) (failed []error) {
	for _, g := range e.groups {
		g.Eval(ruletemplate.Begin(ctx, &ruletemplate.Evaluation{Rules: g.Rules(), At: at, ExternalLabels: e.ExternalLabels, Link: e.ExternalURL}), at)
		for _, rule := range g.Rules() {
			if err := rule.LastError(); err != nil {
				failed = append(failed, fmt.Errorf("    rule: %s, time: %s, err: %w", rule.Name(), at.Sub(time.Unix(0, 0).UTC()), err))
			}
		}
	}
	return failed
}

// load reads the rule files. Groups that order does not name have the rank of its first; groups of
// equal rank are in the order of the files.
func (e *evaluation) load(files []string, order map[string]int) []error {
	groups, errs := ruletemplate.Limits{}.Load(&rules.ManagerOptions{
		QueryFunc: ruletemplate.NewGuard(ruletemplate.Limits{}, nil).Around(rules.EngineQueryFunc(e.engine, e.store)), Appendable: e.store, Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: e.Parser,
	}, time.Duration(e.Interval), e.ExternalLabels, e.ExternalURL, e.IgnoreUnknownFields, files)
	for _, g := range groups {
		for _, rule := range g.Rules() {
			if a, ok := rule.(*rules.AlertingRule); ok {
				a.SetRestored(true) // otherwise it writes no ALERTS
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *rules.Group) int { return cmp.Compare(order[a.Name()], order[b.Name()]) })
	e.groups = groups
	return errs
}

// alert is an alert that fires or is expected to.
type alert struct {
	Labels      labels.Labels
	Annotations labels.Labels
}

func compareAlert(a, b alert) int {
	return cmp.Or(labels.Compare(a.Labels, b.Labels), labels.Compare(a.Annotations, b.Annotations))
}

// compareAlerts compares the alerts of a name that fire now.
func (e *evaluation) compareAlerts(c *alertCase) error {
	var want, got []alert
	for _, x := range c.Expected {
		ls := labels.NewBuilder(labels.FromMap(x.Labels))
		ls.Set(labels.AlertName, c.Name)
		want = append(want, alert{ls.Labels(), labels.FromMap(x.Annotations)})
	}
	for _, g := range e.groups {
		for _, rule := range g.Rules() {
			a, ok := rule.(*rules.AlertingRule)
			if !ok || a.Name() != c.Name {
				continue
			}
			for _, active := range a.ActiveAlerts() {
				if active.State == rules.StateFiring {
					got = append(got, alert{active.Labels, active.Annotations})
				}
			}
		}
	}
	slices.SortFunc(want, compareAlert)
	slices.SortFunc(got, compareAlert)
	if slices.EqualFunc(want, got, func(a, b alert) bool { return compareAlert(a, b) == 0 }) {
		return nil
	}
	name := ""
	if e.Name != "" {
		name = fmt.Sprintf("    name: %s,\n", e.Name)
	}
	const indent = "            "
	if e.Diff {
		encode := func(all []alert) ([]byte, error) {
			if len(all) == 0 {
				all = []alert{{}} // so that the lists have elements to compare
			}
			return json.Marshal(all)
		}
		a, err := encode(want)
		if err != nil {
			return fmt.Errorf("encode the expected alerts: %w", err)
		}
		b, err := encode(got)
		if err != nil {
			return fmt.Errorf("encode the alerts: %w", err)
		}
		o := jsondiff.DefaultConsoleOptions()
		_, text := jsondiff.Compare(a, b, &o)
		return fmt.Errorf("%s    alertname: %s, time: %s, \n        diff: %v", name, c.Name, c.EvalTime, indented(text, indent))
	}
	return fmt.Errorf("%s    alertname: %s, time: %s, \n        exp:%v, \n        got:%v", name, c.Name, c.EvalTime, indented(alertsText(want), indent), indented(alertsText(got), indent))
}

// alertsText describes alerts over several lines.
func alertsText(all []alert) string {
	if len(all) == 0 {
		return "[]"
	}
	parts := make([]string, len(all))
	for i, a := range all {
		parts[i] = fmt.Sprintf("%d:\n  Labels:%s\n  Annotations:%s", i, a.Labels, a.Annotations)
	}
	return "[\n" + strings.Join(parts, ",\n") + "\n]"
}

// indented puts indent before every line but the first.
func indented(text, indent string) string { return strings.ReplaceAll(text, "\n", "\n"+indent) }
