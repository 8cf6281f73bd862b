package promapp

import (
	"context"
	"time"

	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/tenant"
)

// shows reports whether a request may see the targets and rules: those of one tenant, which are
// there once the monitor is built.
func (m *Monitor) shows(ctx context.Context) bool {
	return m.current.Load() != nil && tenant.From(ctx) == m.tenant
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

// Rules implements api.Monitoring.
func (m *Monitor) Rules(ctx context.Context) v1.RulesRetriever {
	if !m.shows(ctx) {
		return nil
	}
	return m.ruling.manager
}

// ConfigYAML implements api.Monitoring. Secrets are hidden.
func (m *Monitor) ConfigYAML() string {
	if c := m.current.Load(); c != nil {
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
