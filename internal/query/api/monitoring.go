package api

import (
	"context"
	"time"

	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// Monitoring is what a process scrapes and which rules it evaluates. The methods with a context
// return nil for tenants other than the one whose targets and rules these are. All methods are safe
// for concurrent use.
type Monitoring interface {
	ScrapePools(ctx context.Context) v1.ScrapePoolsRetriever
	Targets(ctx context.Context) v1.TargetRetriever
	Alertmanagers(ctx context.Context) v1.AlertmanagerRetriever
	Rules(ctx context.Context) v1.RulesRetriever
	// ConfigYAML is Prometheus' configuration file; "" if there is none.
	ConfigYAML() string
	// Reloaded reports whether the last attempt to read the configuration succeeded, and when one
	// succeeded last.
	Reloaded() (ok bool, last time.Time)
}

// retrievers are what upstream's API asks.
type retrievers struct {
	ScrapePools   func(context.Context) v1.ScrapePoolsRetriever
	Targets       func(context.Context) v1.TargetRetriever
	Alertmanagers func(context.Context) v1.AlertmanagerRetriever
	Rules         func(context.Context) v1.RulesRetriever
}

// shownBy returns the retrievers of m, which answer as a Prometheus without a configuration where m
// has nothing.
func shownBy(m Monitoring) retrievers {
	if m == nil {
		return retrievers{noScrapePools, noTargets, noAlertmanagers, noRules}
	}
	return retrievers{
		or(m.ScrapePools, noScrapePools), or(m.Targets, noTargets), or(m.Alertmanagers, noAlertmanagers), or(m.Rules, noRules),
	}
}

func or[T comparable](get, instead func(context.Context) T) func(context.Context) T {
	var none T
	return func(ctx context.Context) T {
		if v := get(ctx); v != none {
			return v
		}
		return instead(ctx)
	}
}
