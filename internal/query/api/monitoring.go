package api

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// Monitoring is what a process scrapes, and whom it notifies. The methods with a context return nil
// for tenants other than the one whose targets these are. All methods are safe for concurrent use.
type Monitoring interface {
	ScrapePools(ctx context.Context) v1.ScrapePoolsRetriever
	Targets(ctx context.Context) v1.TargetRetriever
	Alertmanagers(ctx context.Context) v1.AlertmanagerRetriever
	// ExternalLabels are those of the configuration, for the same tenant only.
	ExternalLabels(ctx context.Context) labels.Labels
	// ConfigYAML is Prometheus' configuration file; "" if there is none.
	ConfigYAML() string
	// Reloaded reports whether the last attempt to read the configuration succeeded, and when one
	// succeeded last.
	Reloaded() (ok bool, last time.Time)
}

// RuleGroups are the rules that a process evaluates. It is safe for concurrent use.
type RuleGroups interface {
	// Rules returns those of the tenant of ctx; nil: none. An error says that they cannot be read
	// now.
	Rules(ctx context.Context) (v1.RulesRetriever, error)
}

// externalLabels are those with which other servers see the series that a request reads, unless a
// series has labels of these names.
func (s *server) externalLabels(ctx context.Context) labels.Labels {
	if s.settings.Monitoring == nil {
		return labels.EmptyLabels()
	}
	return s.settings.Monitoring.ExternalLabels(ctx)
}

// retrievers are what upstream's API asks.
type retrievers struct {
	ScrapePools   func(context.Context) v1.ScrapePoolsRetriever
	Targets       func(context.Context) v1.TargetRetriever
	Alertmanagers func(context.Context) v1.AlertmanagerRetriever
}

// shownBy returns the retrievers of m, which answer as a Prometheus without a configuration where m
// has nothing.
func shownBy(m Monitoring) retrievers {
	if m == nil {
		return retrievers{noScrapePools, noTargets, noAlertmanagers}
	}
	return retrievers{or(m.ScrapePools, noScrapePools), or(m.Targets, noTargets), or(m.Alertmanagers, noAlertmanagers)}
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

// rulesKey is the key of a request's rules in its context.
type rulesKey struct{}

// withRules reads the rules that the handler shows before it runs: upstream asks for them where
// there is no way to report an error.
func (s *server) withRules(next http.Handler) http.Handler {
	if s.settings.Rules == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, err := s.settings.Rules.Rules(r.Context())
		if err != nil {
			s.respond.StorageError(w, r, err)
			return
		}
		if all != nil {
			r = r.WithContext(context.WithValue(r.Context(), rulesKey{}, all))
		}
		next.ServeHTTP(w, r)
	})
}

// rulesOf returns the rules of a request; none where withRules found none.
func rulesOf(ctx context.Context) v1.RulesRetriever {
	if all, ok := ctx.Value(rulesKey{}).(v1.RulesRetriever); ok {
		return all
	}
	return absent{}
}
