package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/api/answers"
	"github.com/promlake/promlake/internal/query/api/respond"
)

// The parts of a Prometheus server that are off: writing, administration, search and scraping.
// routes.go does not serve their routes either.
const (
	enableAdmin, enableSearch, isAgent = false, false, false
	maxSearchLimit                     = 0
	noDirectory                        = ""
)

// What upstream's API expects from a server, for one without a configuration that is always ready
// and has no notifications.
func latestConfig() config.Config                                   { return config.DefaultConfig }
func always(h http.HandlerFunc) http.HandlerFunc                    { return h }
func notes() []notifications.Notification                           { return nil }
func noteStream() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false }

// upstream builds upstream's API over the backend. With a nil render, statistics are upstream's.
// The OpenAPI document of its constructor is empty, see third_party/libopenapi.
func (s *server) upstream(render v1.StatsRenderer) *v1.API {
	build := s.prometheusVersion()
	m := s.settings.Monitoring
	api := v1.NewAPI(
		s.backend, s.backend,
		nil, nil, // no appender
		s.backend,
		shown[v1.ScrapePoolsRetriever](m, Monitoring.ScrapePools, absent{}),
		shown[v1.TargetRetriever](m, Monitoring.Targets, absent{}),
		shown[v1.AlertmanagerRetriever](m, Monitoring.Alertmanagers, absent{}),
		latestConfig,
		s.settings.Flags,
		s.settings.GlobalURLs,
		always,
		noTSDB{}, noDirectory, enableAdmin,
		enableSearch, maxSearchLimit,
		s.logger,
		shown[v1.RulesRetriever](m, Monitoring.Rules, absent{}),
		0, 0, 0, // remote reads are not its; see remoteRead
		isAgent,
		s.cors,
		s.runtimeInfo,
		&build,
		notes, noteStream,
		prometheus.Gatherers{},
		nil, // metrics
		render,
		false, nil, false, false, false, false, // nothing is written
		s.settings.LookbackDelta,
		false, false,
		respond.OverrideCode,
		s.features(),
		v1.OpenAPIOptions{},
		s.parser,
	)
	api.ClearCodecs()
	api.InstallCodec(answers.Codec{})
	return api
}
