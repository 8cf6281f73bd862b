package rulefn

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what functions do with rules.
type metrics struct {
	evaluations   *prometheus.CounterVec
	groups        *prometheus.CounterVec
	missed        prometheus.Counter
	samples       prometheus.Counter
	refused       prometheus.Counter
	notifications *prometheus.CounterVec
	redelivered   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "promlake_rules_" + name, Help: help})
	}
	vec := func(name, label, help string, values ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "promlake_rules_" + name, Help: help}, []string{label})
		for _, one := range values {
			v.WithLabelValues(one)
		}
		return v
	}
	m := &metrics{
		evaluations:   vec("evaluations_total", "result", "Evaluations of rules by functions.", "ok", "failed"),
		groups:        vec("groups_total", "result", "Rule groups by what became of their evaluation: committed, overtaken by another invocation, failed, or invalid.", "committed", "overtaken", "failed", "invalid"),
		missed:        counter("iterations_missed_total", "Evaluations of rule groups that were too old to be made up for."),
		samples:       counter("samples_total", "Samples that rules have written, with those that were written again."),
		refused:       counter("refused_writes_total", "Writes of rules of which a part was refused. The log has the reasons."),
		notifications: vec("notifications_total", "result", "Notifications to the receiver: sent, failed, or dropped because too many of a group waited.", "sent", "failed", "dropped"),
		redelivered:   counter("redelivered_total", "Evaluations of rule groups whose results were delivered again, because it was not known whether they had been."),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.evaluations, m.groups, m.missed, m.samples, m.refused, m.notifications, m.redelivered} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics of rules: %w", err)
	}
	return m, nil
}

// evaluated counts an evaluation of the rules of a group.
func (m *metrics) evaluated(rules int, failures []error) {
	failed := min(len(failures), rules)
	m.evaluations.WithLabelValues("failed").Add(float64(failed))
	m.evaluations.WithLabelValues("ok").Add(float64(rules - failed))
}
