package promapp

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// tenantMetrics are those of the rules that tenants have set.
type tenantMetrics struct {
	polls    *prometheus.CounterVec
	failures prometheus.Counter
	tenants  prometheus.Gauge
	groups   prometheus.Gauge
	refused  prometheus.Gauge
	updating prometheus.Gauge

	shared *rules.Metrics // of all tenants
	mu     sync.Mutex
	own    []*prometheus.CounterVec // of each tenant
}

// Describe implements prometheus.Collector: tenants come while the process runs.
func (*tenantMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *tenantMetrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.own {
		c.Collect(ch)
	}
}

// of returns upstream's metrics for the groups of a tenant. Only counters have the tenant as a
// label, and none the group: tenants name as many groups as they like. When a group is removed,
// the counters of its tenant begin again, as counters may.
func (m *tenantMetrics) of(tenant string) *rules.Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.V2.NewCounterVec(prometheus.CounterVecOpts{
			CounterOpts:    prometheus.CounterOpts{Name: "promlake_prometheus_" + name, Help: help},
			VariableLabels: prometheus.ConstrainedLabels{{Name: tenantLabel, Constraint: func(string) string { return tenant }}},
		})
		m.own = append(m.own, c)
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := *m.shared
	out.EvalTotal = counter("rule_evaluations_total", "Evaluations of the rules of a tenant.")
	out.EvalFailures = counter("rule_evaluation_failures_total", "Failed evaluations of the rules of a tenant.")
	out.IterationsScheduled = counter("rule_group_iterations_total", "Scheduled evaluations of the rule groups of a tenant, whether executed or missed.")
	out.IterationsMissed = counter("rule_group_iterations_missed_total", "Evaluations of the rule groups of a tenant that were missed because the one before was slow.")
	return &out
}

func newTenantMetrics(reg prometheus.Registerer) *tenantMetrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_ruler_"}
	m := &tenantMetrics{
		polls:    f.CountersOf("polls_total", "Listings of the store for changed rules of tenants by result: ok or failed.", "result", "ok", "failed"),
		failures: f.Counter("load_failures_total", "Changed rules of tenants that could not be read or loaded. The former ones stay, and the next listing tries again."),
		tenants:  f.Gauge("tenants", "Tenants whose rules this process evaluates."),
		refused:  f.Gauge("groups_refused", "Rule groups of tenants that this process does not evaluate because of a limit. /api/v1/rules shows some to their tenant."),
		shared:   rules.NewGroupMetrics(nil),
		groups:   f.Gauge("groups", "Rule groups of tenants that this process evaluates."),
		updating: f.Gauge("updating_tenants", "Tenants whose changed rules are being loaded. They wait for evaluations of the groups that they replace."),
	}
	reg.MustRegister(m)
	prefixed := prometheus.WrapRegistererWithPrefix("promlake_", reg)
	prefixed.MustRegister(m.shared.EvalDuration, m.shared.EvalDurationHistogram, m.shared.IterationDuration, m.shared.IterationDurationHistogram)
	return m
}

// count sets the gauges. The caller locks the rules.
func (m *tenantMetrics) count(t *tenantRules) {
	tenants, groups, refused := 0, 0, 0
	for _, o := range t.all {
		if o.groups > 0 {
			tenants, groups = tenants+1, groups+o.groups
		}
		refused += o.refused.count
	}
	for _, no := range t.turned {
		refused += no.refused.count
	}
	m.refused.Set(float64(refused))
	m.tenants.Set(float64(tenants))
	m.groups.Set(float64(groups))
}
