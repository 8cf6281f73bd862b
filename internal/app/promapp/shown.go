package promapp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/access/tenant"
)

// Configured reports whether there is a configuration.
func (m *Monitor) Configured() bool { return m.set.Configured() || m.adopted.Load() }

// shows reports whether a request may see the targets and rules: those of one tenant, which are
// there once the monitor is built.
func (m *Monitor) shows(ctx context.Context) bool {
	return m.Configured() && m.current.Load() != nil && tenant.From(ctx) == m.tenant
}

// ScrapePools implements api.Monitoring.
func (m *Monitor) ScrapePools(ctx context.Context) v1.ScrapePoolsRetriever {
	if !m.shows(ctx) {
		return nil
	}
	return m.scraping.manager
}

// Targets implements api.Monitoring.
func (m *Monitor) Targets(ctx context.Context) v1.TargetRetriever {
	if !m.shows(ctx) {
		return nil
	}
	return m.scraping.manager
}

// Alertmanagers implements api.Monitoring.
func (m *Monitor) Alertmanagers(ctx context.Context) v1.AlertmanagerRetriever {
	if !m.shows(ctx) {
		return nil
	}
	return m.notifying.manager
}

// Rules implements api.Monitoring: the rules that the tenant has set, and for the tenant of the
// configuration those of rule_files.
func (m *Monitor) Rules(ctx context.Context) v1.RulesRetriever {
	if m.current.Load() == nil {
		return nil
	}
	var own *listed
	if m.tenants != nil {
		own = m.tenants.retriever(tenant.From(ctx))
	}
	switch files := m.shows(ctx); {
	case files && own != nil:
		own.managers = append(own.managers, m.ruling.manager)
		return own
	case files:
		return m.ruling.manager
	case own != nil:
		return own
	default:
		return nil
	}
}

// listed are the rules of managers, and those that are not evaluated. It implements
// v1.RulesRetriever.
type listed struct {
	managers []*rules.Manager
	refused  refusals
}

// RuleGroups implements v1.RulesRetriever. The groups are sorted like those of one manager.
func (l *listed) RuleGroups() []*rules.Group {
	all := l.refused.shown()
	for _, m := range l.managers {
		all = append(all, m.RuleGroups()...)
	}
	slices.SortStableFunc(all, func(x, y *rules.Group) int {
		return cmp.Or(cmp.Compare(x.File(), y.File()), cmp.Compare(x.Name(), y.Name()))
	})
	return all
}

// AlertingRules implements v1.RulesRetriever.
func (l *listed) AlertingRules() (all []*rules.AlertingRule) {
	for _, m := range l.managers {
		all = append(all, m.AlertingRules()...)
	}
	return all
}

// ExternalLabels implements api.Monitoring.
func (m *Monitor) ExternalLabels(ctx context.Context) labels.Labels {
	if !m.shows(ctx) {
		return labels.EmptyLabels()
	}
	return m.current.Load().GlobalConfig.ExternalLabels
}

// ConfigYAML implements api.Monitoring. Secrets are hidden.
func (m *Monitor) ConfigYAML() string {
	if c := m.current.Load(); c != nil && m.Configured() {
		return c.String()
	}
	return ""
}

// Reloaded implements api.Monitoring.
func (m *Monitor) Reloaded() (ok bool, last time.Time) {
	if m.current.Load() == nil {
		return false, time.Time{}
	}
	return m.met.ok.Load(), time.UnixMilli(m.met.last.Load()).UTC()
}
