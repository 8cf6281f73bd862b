package api

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql/parser"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// whole returns the API that upstream's constructor builds.
func (s *server) whole(registerer prometheus.Registerer, render v1.StatsRenderer) *v1.API {
	build := s.buildInfo()
	return v1.NewAPI(
		s.backend, s.backend,
		nil, nil, // no appender
		s.backend,
		noScrapePools, noTargets, noAlertmanagers,
		latestConfig,
		s.settings.Flags,
		v1.GlobalURLOptions{},
		always,
		noTSDB{}, noDirectory, enableAdmin,
		enableSearch, maxSearchLimit,
		s.logger,
		rulesOf,
		s.settings.RemoteReadSampleLimit, s.settings.RemoteReadConcurrency, s.settings.RemoteReadFrameBytes,
		isAgent,
		s.cors,
		s.runtimeInfo,
		&build,
		notes, noteStream,
		prometheus.Gatherers{},
		registerer,
		render,
		false, nil, false, false, false, false, // nothing is written
		s.settings.LookbackDelta,
		false, false,
		respond.OverrideCode,
		s.features(),
		v1.OpenAPIOptions{Version: build.Version, IncludePaths: []string{"/none"}},
		s.parser,
	)
}

// TestBare compares the API of bare with the one that upstream's constructor builds: the same
// fields are set, and to equal values where they can be compared. If it fails after an update of
// upstream, fields must follow upstream's constructor.
func TestBare(t *testing.T) {
	settings, err := Settings{Flags: map[string]string{"a": "b"}}.Complete()
	require.NoError(t, err)
	status, err := newProcess(time.Now)
	require.NoError(t, err)
	s := &server{settings: settings, parser: parser.NewParser(parser.Options{}), cors: regexp.MustCompile("x"), now: time.Now, logger: slog.New(slog.DiscardHandler), status: status}
	for name, render := range map[string]v1.StatsRenderer{"upstream's statistics": nil, "ours": renderStats} {
		t.Run(name, func(t *testing.T) {
			made, err := bare(s.fields(prometheus.NewRegistry(), render))
			require.NoError(t, err)
			got, want := reflect.ValueOf(made).Elem(), reflect.ValueOf(s.whole(prometheus.NewRegistry(), render)).Elem()
			for i := range want.NumField() {
				field := want.Type().Field(i).Name
				switch field {
				case "openAPIBuilder", "metaCache", "codecs": // not served; of searches, which are off; set afterwards
					require.True(t, got.Field(i).IsZero(), field)
					continue
				}
				require.Equal(t, want.Field(i).IsZero(), got.Field(i).IsZero(), field)
				switch want.Field(i).Kind() {
				case reflect.Func:
					if field != "now" {
						require.Equal(t, want.Field(i).Pointer(), got.Field(i).Pointer(), field)
					}
				case reflect.Interface:
					if !want.Field(i).IsNil() {
						require.Equal(t, want.Field(i).Elem().Type(), got.Field(i).Elem().Type(), field)
					}
				case reflect.Bool:
					require.Equal(t, want.Field(i).Bool(), got.Field(i).Bool(), field)
				}
			}
		})
	}
	values := s.fields(nil, nil)
	values["parser"] = 1
	_, err = bare(values)
	require.ErrorContains(t, err, "field parser has type parser.Parser, not int")
	delete(values, "parser")
	_, err = bare(values)
	require.ErrorContains(t, err, "fields, expected")
	values["other"] = 1
	_, err = bare(values)
	require.ErrorContains(t, err, "no value for its field parser")
}
