package api

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// What of a Prometheus server is off: everything that writes, administrates or belongs to scraping.
// routes.go keeps it unreachable as well.
const (
	enableAdmin, enableSearch, isAgent = false, false, false
	maxSearchLimit                     = 0
	noDirectory                        = ""
)

// What upstream asks a server for that has no configuration, is always ready, and has nothing to
// notify anybody of.
func latestConfig() config.Config                                   { return config.DefaultConfig }
func always(h http.HandlerFunc) http.HandlerFunc                    { return h }
func notes() []notifications.Notification                           { return nil }
func noteStream() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false }

// cautious returns a Registerer that keeps its first failure. A nil reg stays nil.
func cautious(reg prometheus.Registerer) (prometheus.Registerer, *error) {
	err := new(error)
	if reg == nil {
		return nil, err
	}
	return registerable{reg, err}, err
}

// upstream builds upstream's API over the backend. A nil render renders statistics as upstream
// does.
func (s *server) upstream(reg prometheus.Registerer, render v1.StatsRenderer) (*v1.API, error) {
	registerer, regErr := cautious(reg)
	api, err := bare(s.fields(registerer, render))
	if err != nil {
		return nil, err
	}
	api.InstallCodec(codec{})
	return api, *regErr
}

// fields are what upstream's constructor puts into an API, by the names of its fields; nil is what
// is off.
func (s *server) fields(registerer prometheus.Registerer, render v1.StatsRenderer) map[string]any {
	build := s.buildInfo()
	renderer := v1.StatsRenderer(v1.DefaultStatsRenderer)
	if render != nil {
		renderer = render
	}
	var code v1.OverrideErrorCode = overrideCode
	return map[string]any{
		"Queryable": s.backend, "QueryEngine": s.backend, "ExemplarQueryable": s.backend,
		"scrapePoolsRetriever": noScrapePools, "targetRetriever": noTargets, "alertmanagerRetriever": noAlertmanagers, "rulesRetriever": noRules,
		"now": time.Now, "config": latestConfig, "flagsMap": s.settings.Flags, "ready": always, "globalURLOptions": v1.GlobalURLOptions{},
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
