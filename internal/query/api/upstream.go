package api

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote"
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

// cautious returns a Registerer that stores its first failure in err. A nil reg stays nil.
func cautious(reg prometheus.Registerer) (prometheus.Registerer, *error) {
	err := new(error)
	if reg == nil {
		return nil, err
	}
	return registerable{reg, err}, err
}

// upstream builds upstream's API over the backend. With a nil render, statistics are rendered as
// upstream does.
func (s *server) upstream(reg prometheus.Registerer, render v1.StatsRenderer) (*v1.API, error) {
	registerer, regErr := cautious(reg)
	fields := s.fields(registerer, render)
	if render == nil { // requests that answers.Handler serves
		fields["statsRenderer"] = answers.Lending(v1.DefaultStatsRenderer)
	}
	api, err := bare(fields)
	if err != nil {
		return nil, err
	}
	api.InstallCodec(answers.Codec{})
	return api, *regErr
}

// fields returns the fields that upstream's constructor would set in an API, by name; nil means
// that the part is off.
func (s *server) fields(registerer prometheus.Registerer, render v1.StatsRenderer) map[string]any {
	build := s.buildInfo()
	shown := shownBy(s.settings.Monitoring)
	renderer := v1.StatsRenderer(v1.DefaultStatsRenderer)
	if render != nil {
		renderer = render
	}
	var code v1.OverrideErrorCode = respond.OverrideCode
	return map[string]any{
		"Queryable": s.backend, "QueryEngine": s.backend, "ExemplarQueryable": s.backend,
		"scrapePoolsRetriever": shown.ScrapePools, "targetRetriever": shown.Targets, "alertmanagerRetriever": shown.Alertmanagers, "rulesRetriever": rulesOf,
		"now": time.Now, "config": latestConfig, "flagsMap": s.settings.Flags, "ready": always, "globalURLOptions": s.settings.GlobalURLs,
		"db": noTSDB{}, "dbDir": noDirectory, "enableAdmin": enableAdmin,
		"enableSearch": enableSearch, "maxSearchLimit": maxSearchLimit, "metaCache": nil,
		"logger": s.logger, "CORSOrigin": s.cors, "buildInfo": &build, "runtimeInfo": s.runtimeInfo, "gatherer": prometheus.Gatherers{}, "isAgent": isAgent,
		"statsRenderer": renderer, "customStatsRenderer": render != nil,
		"notificationsGetter": notes, "notificationsSub": noteStream, "overrideErrorCode": code,
		"remoteWriteHandler": nil, "otlpWriteHandler": nil,
		"remoteReadHandler": remote.NewReadHandler(s.logger, registerer, s.backend, latestConfig, s.settings.RemoteReadSampleLimit, s.settings.RemoteReadConcurrency, s.settings.RemoteReadFrameBytes),
		"codecs":            nil, "featureRegistry": s.features(), "openAPIBuilder": nil, "parser": s.parser,
	}
}
