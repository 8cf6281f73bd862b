package rulefn

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
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

func newMetrics(reg prometheus.Registerer) *metrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_rules_"}
	return &metrics{
		evaluations:   f.CountersOf("evaluations_total", "Evaluations of rules by functions.", "result", "ok", "failed"),
		groups:        f.CountersOf("groups_total", "Rule groups by what became of their evaluation: committed, overtaken by another invocation, failed, or invalid.", "result", "committed", "overtaken", "failed", "invalid"),
		missed:        f.Counter("iterations_missed_total", "Evaluations of rule groups that were too old to be made up for."),
		samples:       f.Counter("samples_total", "Samples that rules have written, with those that were written again."),
		refused:       f.Counter("refused_writes_total", "Writes of rules of which a part was refused. The log has the reasons."),
		notifications: f.CountersOf("notifications_total", "Notifications to the receiver: sent, failed, or dropped because too many of a group waited.", "result", "sent", "failed", "dropped"),
		redelivered:   f.Counter("redelivered_total", "Evaluations of rule groups whose results were delivered again, because it was not known whether they had been."),
	}
}
