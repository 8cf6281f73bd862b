// Package api is the HTTP API of the query stage.
//
// It embeds upstream's own HTTP API (web/api/v1), so that JSON, status codes, error types,
// warnings, parameters and compression are upstream's. It adds what a multi-tenant server without
// scrape targets needs:
//
//	request → route → metrics → pace of writing → panic recovery → tenant → limits of body,
//	expressions and memory → handler of upstream or of this package
//
// This package handles /federate, and the routes whose upstream handler reads scrape targets or a
// local TSDB, or has no context for the tenant (see routes.go). Every other route that is not one
// of upstream's query routes is answered with 404.
//
// The package uses storage only through Backend and imports no stage. Below it are the packages
// that need no backend, or a small part of one: guard, answers, respond and weights.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/gate"
	"github.com/prometheus/prometheus/util/httputil"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/api/answers"
	"github.com/promlake/promlake/internal/query/api/guard"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
)

const (
	apiPath      = "/api/v1"
	federatePath = "/federate"
	mimirPrefix  = "/prometheus"
)

// rulerPaths are where Mimir, Cortex and Loki have rules.
var rulerPaths = []string{"/config/v1/rules", mimirPrefix + "/config/v1/rules", "/api/prom/rules"}

// Patterns returns the http.ServeMux patterns that New's handler serves: the API and /federate,
// both also below /prometheus, the prefix that clients of Mimir use; and the paths of rules, if
// another process has these.
func Patterns(s Settings) []string {
	all := []string{
		apiPath + "/", federatePath,
		mimirPrefix + apiPath + "/", mimirPrefix + federatePath,
	}
	if s.RulesURL != "" {
		for _, path := range rulerPaths {
			all = append(all, path, path+"/")
		}
	}
	return all
}

// server holds what the handlers of this package share. It is immutable.
type server struct {
	settings Settings
	backend  Backend
	respond  respond.Responder
	guard    *guard.Guard
	parser   parser.Parser
	cors     *regexp.Regexp
	now      func() time.Time
	logger   *slog.Logger
	started  time.Time
	dir      string
	hostname string
	explains Explainer  // nil: the backend cannot explain queries
	sql      SQLer      // nil: the backend has no SQL
	lakes    Laker      // nil: the backend cannot describe its objects
	pieces   Piecer     // nil: the backend evaluates no pieces
	queries  Accountant // nil: the backend does not list its queries
	weights  weights.Server

	reads   *gate.Gate       // of RemoteReadConcurrency
	readers prometheus.Gauge // remote reads that run

	deprecated func() map[string]http.Handler // of another upstream API, by upstream's path
}

// New returns a handler for the paths of Patterns. It fails if the settings are invalid or if reg
// already has a metric of remote read. With a nil reg it counts nothing; a nil budget has no limit.
func New(settings Settings, backend Backend, budget *memory.Budget, now func() time.Time, logger *slog.Logger, reg prometheus.Registerer) (http.Handler, error) {
	settings, err := settings.Complete()
	if err != nil {
		return nil, err
	}
	cors, err := settings.corsOrigin()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host name: %w", err)
	}
	s := &server{
		settings: settings,
		backend:  watched{backend},
		respond:  respond.Responder{CORS: cors, Logger: logger},
		parser:   parser.NewParser(settings.Parser),
		cors:     cors,
		now:      now,
		logger:   logger,
		started:  now().UTC(),
		dir:      dir,
		hostname: hostname,
	}
	s.explains, _ = backend.(Explainer)
	s.sql, _ = backend.(SQLer)
	s.lakes, _ = backend.(Laker)
	s.pieces, _ = backend.(Piecer)
	s.queries, _ = backend.(Accountant)
	s.weights = weights.Server{Parser: s.parser, Now: now}
	s.weights.Weigher, _ = backend.(weights.Weigher)
	s.weights.Asker, _ = backend.(weights.Asker)
	s.reads = gate.New(settings.RemoteReadConcurrency)
	s.readers = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "prometheus_remote_read_handler_queries", Help: "The current number of remote read queries that are in execution.",
	})
	if reg != nil {
		if err := reg.Register(s.readers); err != nil {
			return nil, fmt.Errorf("register remote read metrics: %w", err)
		}
	}
	refused := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "promlake_query_expressions_refused_total",
		Help: "Requests whose expressions were rejected before parsing, by the flag of the exceeded limit.",
	}, []string{"flag"})
	s.guard = &guard.Guard{
		Respond: s.respond, WriteTimeout: settings.WriteTimeout, MaxBodyBytes: settings.MaxBodyBytes, Federated: federatedPaths, MaxTenants: settings.MaxTenants, Expressions: settings.Expressions, Refused: refused, Memory: budget,
	}
	// Its statistics are upstream's. It is built at the first use: that takes 10 ms, and is rare.
	s.deprecated = sync.OnceValue(func() map[string]http.Handler {
		handlers := map[string]http.Handler{}
		s.upstream(nil).Register(route.New().WithInstrumentation(func(path string, h http.HandlerFunc) http.HandlerFunc {
			handlers[path] = answers.Zipped(h)
			return h
		}))
		return handlers
	})

	instrument := telemetry.Instrument(reg)
	guarded := func(name string, h http.Handler) http.HandlerFunc {
		return instrument(name, s.guard.Wrap(name, h)).ServeHTTP
	}
	federate := route.New()
	federate.Get(federatePath, guarded(federatePath, answers.Zipped(httputil.CompressionHandler{Handler: s.queued(http.HandlerFunc(s.federate))})))
	v1 := s.routes(s.upstream(answers.Lending(renderStats)), guarded)

	mux := http.NewServeMux()
	for _, prefix := range []string{"", mimirPrefix} {
		mux.Handle(prefix+apiPath+"/", http.StripPrefix(prefix+apiPath, v1))
		mux.Handle(prefix+federatePath, http.StripPrefix(prefix, federate))
	}
	for _, path := range rulerPaths { // requests for them get here only if Patterns has them
		h := guarded(path, http.HandlerFunc(s.elsewhere))
		mux.Handle(path, h)
		mux.Handle(path+"/", h)
	}
	return mux, nil
}

// Backend provides the data of the API. All methods are safe for concurrent use. Every method that
// reads data takes the tenant from its context (tenant.From).
//
// Errors of the storage methods become responses as listed below. This package does not classify
// errors of a series' sample iterator: those must be a promql error type or a respond.LimitError
// already, or the API treats them as errors of the query.
//
//	respond.LimitError, promql.ErrTooManySamples   422 execution
//	promql.ErrQueryTimeout, expired context        503 timeout
//	promql.ErrQueryCanceled, ended context         499 canceled
//	promql.ErrStorage and everything else          500 internal
type Backend interface {
	promql.QueryEngine
	storage.SampleAndChunkQueryable
	storage.ExemplarQueryable

	// Run calls fn once it is its turn among the queries of all tenants. Its context ends at their
	// timeout, and has request.Request.Leave. An error without a call of fn says that it waited in
	// vain.
	Run(ctx context.Context, fn func(ctx context.Context) error) error
	// Metadata returns the metadata of one metric family, or of all if metric is "".
	Metadata(ctx context.Context, metric string) (map[string][]metadata.Metadata, error)
	// Stats returns the tenant's cardinalities, at most limit entries per list: values per label
	// name, series per metric name, and series per label pair. Times are in ms.
	Stats(ctx context.Context, limit int) (*tsdb.Stats, error)
}
