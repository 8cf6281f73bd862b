package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// subject returns the status, the alert's name and its other labels in one line: what SNS allows is
// printable ASCII of at most 100 characters.
func subject(d document) string {
	one := d.Alerts[0]
	var others []string
	for _, name := range sorted(one.Labels) {
		if name != model.AlertNameLabel {
			others = append(others, fmt.Sprintf("%s=%s", name, one.Labels[name]))
		}
	}
	line := fmt.Sprintf("[%s] %s", strings.ToUpper(one.Status), one.Labels[model.AlertNameLabel])
	if len(others) > 0 {
		line += " (" + strings.Join(others, ", ") + ")"
	}
	line = strings.TrimRight(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, line), " ")
	if len(line) > maxSubject {
		line = line[:maxSubject-len("...")] + "..."
	}
	return line
}

// text returns a document as lines for people.
func text(d document) string {
	one := d.Alerts[0]
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s.\n\n", one.Labels[model.AlertNameLabel], one.Status)
	for _, name := range sorted(one.Annotations) {
		fmt.Fprintf(&b, "%s: %s\n", name, one.Annotations[name])
	}
	b.WriteString("\nLabels:\n")
	for _, name := range sorted(one.Labels) {
		fmt.Fprintf(&b, "  %s = %s\n", name, one.Labels[name])
	}
	fmt.Fprintf(&b, "\nFiring since: %s\n", one.StartsAt.UTC().Format(time.RFC3339))
	if one.Status == resolved {
		fmt.Fprintf(&b, "Resolved: %s\n", one.EndsAt.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, "Expression: %s\n", one.GeneratorURL)
	return b.String()
}

func sorted(set model.LabelSet) []model.LabelName { return slices.Sorted(maps.Keys(set)) }
