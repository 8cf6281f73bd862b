package api

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/util/features"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
)

// PrometheusVersion is the version of Prometheus whose API this is: the release of the module that
// go.mod requires (v0.315.0 is 3.15.0). Clients such as Grafana derive the supported features from
// it.
const PrometheusVersion = "3.15.0"

func (s *server) prometheusVersion() v1.PrometheusVersion {
	return v1.PrometheusVersion{Version: PrometheusVersion, Revision: s.settings.Build.Revision, GoVersion: runtime.Version()}
}

// buildInfo answers /api/v1/status/buildinfo: upstream's fields, Promlake's version and, in a
// process with the API for rules, Mimir's fields, by which Grafana knows that rules can be changed.
func (s *server) buildInfo(*http.Request) (any, error) {
	info := struct {
		v1.PrometheusVersion

		Promlake    string            `json:"promlakeVersion"`
		Application string            `json:"application,omitempty"`
		Features    map[string]string `json:"features,omitempty"`
	}{PrometheusVersion: s.prometheusVersion(), Promlake: s.settings.Build.Version}
	if s.settings.Ruler {
		info.Application = s.settings.Application
		info.Features = map[string]string{
			"ruler_config_api": "true", "alertmanager_config_api": "false", "query_sharding": "false", "federated_rules": "false",
		}
	}
	return info, nil
}

// runtimeInfo answers /api/v1/status/runtimeinfo. Settings are read once at the start, so without a
// configuration of Prometheus the time of the last reload is the start.
func (s *server) runtimeInfo() (v1.RuntimeInfo, error) {
	ok, loaded := true, s.started
	if s.settings.Monitoring != nil {
		ok, loaded = s.settings.Monitoring.Reloaded()
	}
	return v1.RuntimeInfo{
		StartTime:           s.started,
		CWD:                 s.dir,
		Hostname:            s.hostname,
		ServerTime:          s.now().UTC(),
		ReloadConfigSuccess: ok,
		LastConfigTime:      loaded,
		GoroutineCount:      runtime.NumGoroutine(),
		GOMAXPROCS:          runtime.GOMAXPROCS(0),
		GOMEMLIMIT:          debug.SetMemoryLimit(-1), // negative: reads only
		GOGC:                os.Getenv("GOGC"),
		GODEBUG:             os.Getenv("GODEBUG"),
		StorageRetention:    s.settings.StorageRetention,
	}, nil
}

// config answers /api/v1/status/config: with Prometheus' configuration if the process has one.
func (s *server) config(*http.Request) (any, error) {
	if m := s.settings.Monitoring; m != nil {
		if text := m.ConfigYAML(); text != "" {
			return map[string]string{"yaml": text}, nil
		}
	}
	return map[string]string{"yaml": s.settings.ConfigYAML}, nil
}

// features returns the content of /api/v1/features: the features of the parser, of this API and of
// Settings.Features.
func (s *server) features() features.Collector {
	reg := features.NewRegistry()
	s.parser.RegisterFeatures(reg)
	for _, name := range []string{
		"label_values_match", "query_warnings", "query_stats", "time_range_series", "time_range_labels", "exclude_alerts",
	} {
		reg.Enable(features.API, name)
	}
	for _, name := range []string{"admin", "lifecycle", "search", "otlp_write_receiver"} {
		reg.Disable(features.API, name)
	}
	reg.Set(features.API, "sql", s.sql != nil)
	for category, names := range s.settings.Features {
		for name, enabled := range names {
			reg.Set(category, name, enabled)
		}
	}
	return reg
}

// tsdbStatus answers /api/v1/status/tsdb with the tenant's cardinalities, as upstream does if the
// request asks for nothing that upstream does not know. The number of chunks is 0: Promlake has
// none.
func (s *server) tsdbStatus(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, respond.BadRequest(fmt.Sprintf("error parsing form values: %s", err))
	}
	if weights.Extends(r) {
		return s.weights.Explore(r)
	}
	limit, err := rowLimit(r)
	if err != nil {
		return nil, err
	}
	st, err := s.backend.Stats(r.Context(), limit)
	if err != nil {
		return nil, err
	}
	postings := st.IndexPostingStats
	if postings == nil {
		postings = &index.PostingsStats{}
	}
	return v1.TSDBStatus{
		HeadStats: v1.HeadStats{
			NumSeries:     st.NumSeries,
			NumLabelPairs: postings.NumLabelPairs,
			MinTime:       st.MinTime,
			MaxTime:       st.MaxTime,
		},
		SeriesCountByMetricName:     v1.TSDBStatsFromIndexStats(postings.CardinalityMetricsStats),
		LabelValueCountByLabelName:  v1.TSDBStatsFromIndexStats(postings.CardinalityLabelStats),
		MemoryInBytesByLabelName:    v1.TSDBStatsFromIndexStats(postings.LabelValueStats),
		SeriesCountByLabelValuePair: v1.TSDBStatsFromIndexStats(postings.LabelValuePairsStats),
	}, nil
}

func rowLimit(r *http.Request) (int, error) {
	v := r.FormValue("limit")
	if v == "" {
		return weights.DefaultRows, nil
	}
	limit, err := strconv.Atoi(v)
	switch {
	case err != nil || limit < 1:
		return 0, respond.BadRequest("limit must be a positive number")
	case limit > weights.MaxRows:
		return 0, respond.BadRequest(fmt.Sprintf("limit must not exceed %d", weights.MaxRows))
	}
	return limit, nil
}

// Laker is a Backend that can describe the objects of a tenant.
type Laker interface {
	// Lake returns the description, to be encoded as JSON; with columns, it also has the sizes of
	// columns, which cost a read of each block. Errors are those of a Backend.
	Lake(ctx context.Context, columns bool) (any, error)
}

// lake answers /api/v1/status/lake.
func (s *server) lake(r *http.Request) (any, error) {
	columns := false
	if v := r.FormValue("columns"); v != "" {
		var err error
		if columns, err = strconv.ParseBool(v); err != nil {
			return nil, respond.BadRequest(fmt.Sprintf("columns must be true or false, not %q", v))
		}
	}
	return s.lakes.Lake(r.Context(), columns)
}
