package ruletest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nsf/jsondiff"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

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
