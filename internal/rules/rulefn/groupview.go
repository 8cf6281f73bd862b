package rulefn

import (
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/rules/rulestate"
)

// Shown returns the group as upstream's API shows it after the evaluation that left the state, with
// rules of the types v1.AlertingRule and v1.RecordingRule. Where a program has left no time of the
// clock, the time of the last evaluation is that of the schedule, and it took 0. A rule that was not
// evaluated yet has the health "unknown". All rules have the error failed, unless it is nil.
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
