package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/teststorage"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
)

// localTSDB adapts a TSDB as a Prometheus server does for its web handler.
type localTSDB struct{ *teststorage.TestStorage }

func (localTSDB) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }

func (s localTSDB) BlockMetas() ([]tsdb.BlockMeta, error) {
	metas := s.DB.BlockMetas()
	if metas == nil {
		metas = []tsdb.BlockMeta{}
	}
	return metas, nil
}

func (s localTSDB) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

// reference serves upstream's API over the backend's storage and engine, mounted as upstream's
// server mounts it, and returns its URL.
func reference(t testing.TB, b *tsdbBackend, s api.Settings) string {
	t.Helper()
	router := route.New()
	upstreamAPI(t, b, s).Register(router)
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.StripPrefix("/api/v1", router))
	return serve(t, mux)
}

// upstreamAPI returns upstream's API of a server without targets and alertmanagers. It has the rules
// of the settings' Monitoring; nil: none.
func upstreamAPI(t testing.TB, b *tsdbBackend, s api.Settings) *v1.API {
	t.Helper()
	cors, err := relabel.NewRegexp(s.CORSOrigin)
	require.NoError(t, err)
	retrieve := func(context.Context) v1.RulesRetriever { return &rules.Manager{} }
	if s.Monitoring != nil {
		retrieve = s.Monitoring.Rules
	}
	return v1.NewAPI(
		b.Engine, b.TestStorage, nil, nil, b.TestStorage,
		func(context.Context) v1.ScrapePoolsRetriever { return &scrape.Manager{} },
		func(context.Context) v1.TargetRetriever { return &scrape.Manager{} },
		func(context.Context) v1.AlertmanagerRetriever { return &notifier.Manager{} },
		func() config.Config { return config.Config{} },
		s.Flags,
		v1.GlobalURLOptions{},
		func(h http.HandlerFunc) http.HandlerFunc { return h },
		localTSDB{b.TestStorage}, "", false,
		false, 0,
		slog.New(slog.DiscardHandler),
		retrieve,
		s.RemoteReadSampleLimit, s.RemoteReadConcurrency, s.RemoteReadFrameBytes,
		false,
		cors.Regexp,
		func() (v1.RuntimeInfo, error) { return v1.RuntimeInfo{}, nil },
		&v1.PrometheusVersion{},
		nil, nil,
		prometheus.Gatherers{}, prometheus.NewRegistry(),
		nil,
		false, nil, false, false, false, false, testLookback, false, false,
		nil,
		nil,
		v1.OpenAPIOptions{},
		parser.NewParser(s.Parser),
	)
}

// client returns a client that does not follow redirects or decode compression, so that tests see
// the server's bytes.
func client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
