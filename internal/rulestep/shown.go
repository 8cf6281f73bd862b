package rulestep

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/rulestate"
)

// Shown returns the group of upstream's that its API shows, as it was after the evaluation that
// left the state. Where a program has left no time of the clock, the time of the last evaluation is
// that of the schedule, and it took 0. A rule that was not evaluated yet has the health "unknown".
func (g *Group) Shown(state *rulestate.Group) (*rules.Group, error) {
	states, known, _ := g.adopt(state)
	made := make([]rules.Rule, len(g.rules))
	for i := range g.rules {
		var err error
		if made[i], err = g.rules[i].shown(g.opts, &states[i]); err != nil {
			return nil, err
		}
		if !known[i] {
			continue
		}
		made[i].SetEvaluationTimestamp(lastEvaluation(states[i].Measured, state))
		made[i].SetEvaluationDuration(took(states[i].Measured))
		made[i].SetHealth(rules.HealthGood)
		if text := states[i].Error; text != "" {
			made[i].SetHealth(rules.HealthBad)
			made[i].SetLastError(errors.New(text))
		}
	}
	out := rules.NewGroup(rules.GroupOptions{
		Name: g.group.Name, File: g.namespace, Interval: g.Interval(), Limit: g.group.Limit, Rules: made, QueryOffset: &g.offset,
		Opts: &rules.ManagerOptions{Metrics: g.opts.metrics, Logger: g.opts.Logger},
	})
	return out, errors.Join(set(out, "lastEvaluation", lastEvaluation(state.Measured, state)), set(out, "evaluationTime", took(state.Measured)))
}

// lastEvaluation is when an evaluation of the group, or of one of its rules, took place.
func lastEvaluation(m rulestate.Measured, state *rulestate.Group) time.Time {
	if m.LastEvaluation.IsZero() {
		return state.Evaluated
	}
	return m.LastEvaluation
}

func took(m rulestate.Measured) time.Duration {
	return time.Duration(m.EvaluationTime * float64(time.Second))
}

// ShownFailed returns the group without alerts, as it is shown if all rules fail for one reason.
func (g *Group) ShownFailed(reason error) (*rules.Group, error) {
	out, err := g.Shown(&rulestate.Group{})
	if err != nil {
		return nil, err
	}
	for _, r := range out.Rules() {
		r.SetHealth(rules.HealthBad)
		r.SetLastError(reason)
	}
	return out, nil
}

// shown returns the rule with the alerts of its state.
func (r *rule) shown(o *Options, state *rulestate.Rule) (rules.Rule, error) {
	if r.Alert == "" {
		return rules.NewRecordingRule(r.Record, r.expr, r.labels), nil
	}
	out := rules.NewAlertingRule(r.Alert, r.expr, time.Duration(r.For), time.Duration(r.KeepFiringFor), r.labels, labels.FromMap(r.Annotations), o.ExternalLabels, o.ExternalURL.String(), true, o.Logger)
	active := make(map[uint64]*rules.Alert, len(state.Alerts))
	for _, a := range state.Alerts {
		active[a.Labels.Hash()] = &rules.Alert{
			State: stateOf(a.State), Labels: a.Labels, Annotations: a.Annotations, Value: float64(a.Value),
			ActiveAt: a.ActiveAt, FiredAt: a.FiredAt, ResolvedAt: a.ResolvedAt, LastSentAt: a.LastSentAt, ValidUntil: a.ValidUntil, KeepFiringSince: a.KeepFiringSince,
		}
	}
	return out, set(out, "active", active)
}

func stateOf(state string) rules.AlertState {
	switch state {
	case rulestate.Pending:
		return rules.StatePending
	case rulestate.Firing:
		return rules.StateFiring
	default:
		return rules.StateInactive
	}
}

// set sets an unexported field of a group or rule of upstream's, which has no other way to restore
// it and is not in use yet. It fails if upstream's version in go.mod has no such field.
func set[T any](of any, name string, value T) error {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return fmt.Errorf("restore upstream's %T: it has no field %s of type %T", of, name, value)
	}
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
	return nil
}
