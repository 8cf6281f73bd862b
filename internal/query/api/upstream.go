package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// noOpenAPI leaves upstream's OpenAPI document empty: it is not served, and building the whole of it takes most of a process' start.
var noOpenAPI = []string{"/none"}

// upstream builds upstream's API over the backend. A nil render renders statistics as upstream does. Everything of it that writes, administrates or belongs to a scraping
// server is off; routes.go keeps it unreachable as well.
func (s *server) upstream(reg prometheus.Registerer, render v1.StatsRenderer) (*v1.API, error) {
	const (
		enableAdmin, enableSearch, isAgent = false, false, false
		remoteWrite, otlp                  = false, false
		deltaToCumulative, nativeDelta     = false, false
		startTimeZero, typeAndUnit         = false, false
		appendMetadata                     = false
		maxSearchLimit                     = 0
		noDirectory                        = ""
	)
	var (
		regErr     error
		registerer prometheus.Registerer
	)
	if reg != nil {
		registerer = registerable{reg, &regErr}
	}
	build := s.buildInfo()
	api := v1.NewAPI(
		s.backend, s.backend,
		nil, nil, // no appender
		s.backend,
		noScrapePools, noTargets, noAlertmanagers,
		func() config.Config { return config.DefaultConfig },
		s.settings.Flags,
		v1.GlobalURLOptions{},
		func(h http.HandlerFunc) http.HandlerFunc { return h },
		noTSDB{}, noDirectory, enableAdmin,
		enableSearch, maxSearchLimit,
		s.logger,
		noRules,
		s.settings.RemoteReadSampleLimit, s.settings.RemoteReadConcurrency, s.settings.RemoteReadFrameBytes,
		isAgent,
		s.cors,
		s.runtimeInfo,
		&build,
		func() []notifications.Notification { return nil },
		func() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false },
		prometheus.Gatherers{},
		registerer,
		render,
		remoteWrite, nil, otlp, deltaToCumulative, nativeDelta, startTimeZero,
		s.settings.LookbackDelta,
		typeAndUnit, appendMetadata,
		overrideCode,
		s.features(),
		v1.OpenAPIOptions{Version: build.Version, IncludePaths: noOpenAPI},
		s.parser,
	)
	api.ClearCodecs()
	api.InstallCodec(codec{})
	return api, regErr
}
