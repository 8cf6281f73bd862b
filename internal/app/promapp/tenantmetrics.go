package promapp

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// tenantMetrics are those of the rules that tenants have set.
type tenantMetrics struct {
	polls    *prometheus.CounterVec
	failures prometheus.Counter
	tenants  prometheus.Gauge
	groups   prometheus.Gauge
}

func newTenantMetrics(reg prometheus.Registerer) (*tenantMetrics, error) {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "promlake", Subsystem: "ruler", Name: name, Help: help}
	}
	m := &tenantMetrics{
		polls:    prometheus.NewCounterVec(prometheus.CounterOpts(name("polls_total", "Listings of the store for changed rules of tenants by result: ok or failed.")), []string{"result"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts(name("load_failures_total", "Changed rules of tenants that could not be read or loaded. The former ones stay, and the next listing tries again."))),
		tenants:  prometheus.NewGauge(prometheus.GaugeOpts(name("tenants", "Tenants whose rules this process evaluates."))),
		groups:   prometheus.NewGauge(prometheus.GaugeOpts(name("groups", "Rule groups of tenants that this process evaluates."))),
	}
	for _, result := range []string{"ok", "failed"} {
		m.polls.WithLabelValues(result)
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.polls, m.failures, m.tenants, m.groups} {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics of the rules of tenants: %w", err)
	}
	return m, nil
}

// count sets the gauges.
func (m *tenantMetrics) count(t *tenantRules) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tenants, groups := 0, 0
	for _, o := range t.all {
		if n := o.loader.rules.Load().Groups(); n > 0 {
			tenants, groups = tenants+1, groups+n
		}
	}
	m.tenants.Set(float64(tenants))
	m.groups.Set(float64(groups))
}
