// Package admin is Prometheus' HTTP API for deletion. A deletion is a tombstone in the manifest, so
// it is visible as soon as it is answered; the compactor removes the bytes later.
package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Counter counts what a deletion would remove. It must be safe for concurrent use.
type Counter interface {
	// Count returns the number of series with samples in [mint, maxt] (ms, inclusive) that match
	// one of sets, the number of those samples, and their share of the objects' bytes. The tenant
	// is that of ctx (tenant.From). An error with a method QueryLimit() bool is the client's error.
	Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error)
}

// Settings of the admin API. The zero value of a field means its default.
type Settings struct {
	Enabled bool `name:"web.enable-admin-api" default:"false" help:"Let everybody who reaches the HTTP API delete series through it; with --auth.tokens, those with the right admin." when:"Set it while you delete series."`
	// MaxSelectors bounds the selectors (match[]) of a request.
	MaxSelectors int64 `name:"web.max-delete-selectors" default:"64" min:"1" help:"Selectors of one request for deletion. Their matchers may have 64 KiB, those of a tenant's deletions that are not compacted yet 1 MiB." when:"Rarely."`

	// Parser is the PromQL dialect of match[]. Default: that of Prometheus without features.
	Parser parser.Options `kong:"-"`
	// Expressions bound the texts of match[] before they are parsed.
	Expressions expression.Limits `kong:"-"`
	// MaxBodyBytes bounds a request's form.
	MaxBodyBytes int64 `kong:"-" type:"bytes" default:"10MiB" min:"1"`
	// Timeout bounds one request, without the wait of a deletion for the queue.
	Timeout time.Duration `kong:"-" default:"2m" above:"0"`
	// Queued means that writes may wait on a queue before they reach the store. A deletion then
	// takes up to half a minute, until later messages have a later send time than those that it
	// covers.
	Queued bool `kong:"-"`
}

const (
	deletePath  = "/api/v1/admin/tsdb/delete_series"
	cleanPath   = "/api/v1/admin/tsdb/clean_tombstones"
	mimirPrefix = "/prometheus"
)

// Patterns returns the http.ServeMux patterns that New's handler serves. Like the query API, it
// also serves them under the prefix /prometheus.
func Patterns() []string {
	return []string{deletePath, cleanPath, mimirPrefix + deletePath, mimirPrefix + cleanPath}
}

// api answers the requests. It is immutable.
type api struct {
	settings Settings
	store    catalog.Store
	counter  Counter
	parser   parser.Parser
	logger   *slog.Logger
	respond  respond.Responder
	limited  *prometheus.CounterVec
}

// New returns a handler for the paths of Patterns. It commits deletions to the manifests in store;
// counter serves dry runs. With a nil reg, it registers no metrics.
func New(s Settings, store catalog.Store, counter Counter, logger *slog.Logger, reg prometheus.Registerer) http.Handler {
	settings.Fill(&s)
	if s.Queued {
		s.Timeout += catalog.MaxDeleteWait
	}
	c := telemetry.Metrics{Registerer: reg, Prefix: "promlake_admin_"}.CountersOf("limited_total",
		"Deletions that were refused because of a limit: selectors and expression of a request, matcher_bytes of a deletion, tombstones, tombstone_bytes and sealed of a manifest.",
		"limit", limitSelectors, limitMatch, "matcher_bytes", "tombstones", "tombstone_bytes", "sealed")
	a := &api{settings: s, store: store, counter: counter, parser: parser.NewParser(s.Parser), logger: logger, respond: respond.Responder{Logger: logger}, limited: c}
	instrument := telemetry.Instrument(reg)
	mux := http.NewServeMux()
	// Cleaning answers with success at once: the compactor's next cycles remove the deleted samples.
	clean := func(*http.Request) (any, error) { return nil, nil }
	for path, f := range map[string]func(*http.Request) (any, error){deletePath: a.deleteSeries, cleanPath: clean} {
		h := instrument(path, a.handler(f))
		mux.Handle(path, h)
		mux.Handle(mimirPrefix+path, h)
	}
	return mux
}
