package rulefn

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

const (
	stateLabel = "alertstate"

	// ResolvedRetention is how long a resolved alert is sent again, as upstream's constant of this
	// name.
	ResolvedRetention = 15 * time.Minute
)

// alerting is what decides about the alerts of a rule.
type alerting struct {
	name                string
	labels              labels.Labels
	hold, keepFiringFor time.Duration
	limit               int // of alerts that are pending or firing; 0: none
}

// advance returns the alerts of a rule after an evaluation at a time, ascending by labels, and the
// samples that it writes at sampled. before are the alerts after the former evaluation, found those
// that the expression has now. It neither keeps nor changes its arguments. The rules are those of
// upstream's AlertingRule.Eval. After an error, which says that there are too many, there are no
// alerts any more.
func (r *alerting) advance(before, found []rulestate.Alert, at, sampled time.Time) (after []rulestate.Alert, samples promql.Vector, err error) {
	active := make(map[string]rulestate.Alert, len(before)+len(found))
	for _, a := range before {
		active[string(a.Labels.Bytes(nil))] = a
	}
	holds := make(map[string]bool, len(found))
	for _, a := range found {
		key := string(a.Labels.Bytes(nil))
		holds[key] = true
		if old, ok := active[key]; ok && old.State != rulestate.Resolved {
			old.Value, old.Annotations = a.Value, a.Annotations
			a = old
		}
		active[key] = a
	}
	all := slices.SortedFunc(maps.Values(active), func(a, b rulestate.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	activeNow := 0
	for _, a := range all {
		if holds[string(a.Labels.Bytes(nil))] {
			a.KeepFiringSince = time.Time{}
		} else {
			keep := false
			if a.State == rulestate.Firing && r.keepFiringFor > 0 {
				if a.KeepFiringSince.IsZero() {
					a.KeepFiringSince = at
				}
				keep = at.Sub(a.KeepFiringSince) < r.keepFiringFor
			}
			if !keep {
				forget := a.State == rulestate.Pending || !a.ResolvedAt.IsZero() && at.Sub(a.ResolvedAt) > ResolvedRetention
				if a.State != rulestate.Resolved {
					a.State, a.ResolvedAt = rulestate.Resolved, at
				}
				if !forget {
					after = append(after, a)
				}
				continue
			}
		}
		activeNow++
		if a.State == rulestate.Pending && at.Sub(a.ActiveAt) >= r.hold {
			a.State, a.FiredAt = rulestate.Firing, at
		}
		if a.State == rulestate.Firing && at.Sub(a.ActiveAt) < r.hold { // the rule has changed
			a.State, a.FiredAt, a.LastSentAt, a.KeepFiringSince = rulestate.Pending, time.Time{}, time.Time{}, time.Time{}
		}
		after = append(after, a)
		samples = append(samples, r.samples(a, sampled)...)
	}
	if r.limit > 0 && activeNow > r.limit {
		return nil, nil, fmt.Errorf("exceeded limit of %d with %d alerts", r.limit, activeNow)
	}
	return after, samples, nil
}

// samples are those that an active alert writes.
func (r *alerting) samples(a rulestate.Alert, at time.Time) promql.Vector {
	lb := labels.NewBuilder(r.labels)
	a.Labels.Range(func(l labels.Label) { lb.Set(l.Name, l.Value) })
	lb.Set(labels.AlertName, r.name)
	lb.Set(model.MetricNameLabel, ruleeval.ForStateMetric)
	forState := promql.Sample{Metric: lb.Labels(), T: timestamp.FromTime(at), F: float64(a.ActiveAt.Unix())}
	lb.Set(model.MetricNameLabel, ruleeval.AlertsMetric)
	lb.Set(stateLabel, a.State)
	return promql.Vector{{Metric: lb.Labels(), T: timestamp.FromTime(at), F: 1}, forState}
}

// due returns the notifications that are to be sent at a time, and notes them in the alerts, which
// it changes. The rules are those of upstream's AlertingRule.sendAlerts.
func due(alerts []rulestate.Alert, at time.Time, interval, resend time.Duration, link string) (out []rulestate.Notification) {
	for i := range alerts {
		a := &alerts[i]
		if a.State == rulestate.Pending || !a.ResolvedAt.After(a.LastSentAt) && !a.LastSentAt.Add(resend).Before(at) {
			continue
		}
		a.LastSentAt = at
		a.ValidUntil = at.Add(4 * max(interval, resend)) // two evaluations or deliveries may fail
		n := rulestate.Notification{Labels: a.Labels, Annotations: a.Annotations, StartsAt: a.FiredAt, EndsAt: a.ValidUntil, GeneratorURL: link}
		if !a.ResolvedAt.IsZero() {
			n.EndsAt = a.ResolvedAt
		}
		out = append(out, n)
	}
	return out
}
