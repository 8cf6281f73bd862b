package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/util/httputil"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/query/api/guard"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
)

// Routes that evaluate PromQL.
const (
	queryPath      = "/query"
	queryRangePath = "/query_range"
)

// Routes of Promlake; upstream has none at these paths, or in the case of estimates only with a
// feature flag.
const (
	explainPath   = "/explain"
	costPath      = "/query_cost"
	rangeCostPath = "/query_range_cost"
	sqlPath       = "/sql"
	lakePath      = "/status/lake"
	exportPath    = "/export"
	exportCSVPath = "/export/csv"
	piecePath     = "/piece"
	slicesPath    = "/slices"
)

// choice returns the handler of a route, given the one that upstream registers.
type choice func(upstream http.Handler) http.Handler

func keep(upstream http.Handler) http.Handler { return upstream }

func replace(h http.Handler) choice {
	return func(http.Handler) http.Handler { return h }
}

// served lists the API's routes by upstream's path. A path that is not listed is answered with 404.
// So routes that a later upstream version adds stay closed until they are listed, and the
// composition can mount the write routes.
//
// Routes that read, or work for long, are queued. Queries, pieces, SQL, explain and estimates take
// their turns themselves; remote reads and exports have a limit of their own (shared). The others
// read no samples: their time is linear in what the process holds.
func (s *server) served() map[string]choice {
	return map[string]choice{
		"/*path": keep, // OPTIONS

		queryPath:          s.evaluating(queryPath),
		queryRangePath:     s.evaluating(queryRangePath),
		"/query_exemplars": s.queue(s.reading),
		"/format_query":    s.queue(s.printing(func(c *copied) int { return c.pretty })),
		"/parse_query":     s.queue(s.printing(func(c *copied) int { return c.json })),

		"/series":             s.queue(s.reading),
		"/labels":             s.queue(s.reading),
		"/label/:name/values": s.queue(s.countingLabel),
		"/metadata":           s.queue(replace(s.respond.JSON(s.metadata))), // upstream's reads scrape targets
		"/read":               replace(s.boundedRead(withReadStatus(s.shared(http.HandlerFunc(s.remoteRead))))),

		"/scrape_pools":          keep,
		"/scrape_pools/config":   keep,
		"/targets":               keep,
		"/targets/metadata":      keep,
		"/targets/relabel_steps": keep,
		"/alertmanagers":         keep,
		"/alerts":                keep,
		"/rules":                 keep,

		"/features":           keep,
		"/status/buildinfo":   replace(s.respond.JSON(s.buildInfo)),
		"/status/runtimeinfo": keep,
		"/status/flags":       keep,
		"/status/walreplay":   keep,
		"/status/tsdb/blocks": keep,
		// upstream's returns its own configuration
		"/status/config": replace(s.respond.JSON(s.config)),
		// upstream's has no context, so no tenant
		"/status/tsdb": s.queue(replace(s.withAsOf(s.respond.JSON(s.tsdbStatus)))),
	}
}

// remoteRead answers with a handler of upstream for each request: which external labels apply
// depends on the tenant.
func (s *server) remoteRead(w http.ResponseWriter, r *http.Request) {
	if err := s.reads.Start(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer s.reads.Done()
	s.readers.Inc()
	defer s.readers.Dec()
	current := latestConfig()
	current.GlobalConfig.ExternalLabels = s.externalLabels(r.Context())
	s.tracked(remote.NewReadHandler(s.logger, nil, s.backend, func() config.Config { return current },
		s.settings.RemoteReadSampleLimit, 1, s.settings.RemoteReadFrameBytes)).ServeHTTP(w, r)
}

// elsewhere answers requests for rules that another process has.
func (s *server) elsewhere(w http.ResponseWriter, r *http.Request) {
	err := fmt.Errorf("rules and alerts are not at this address, but at %s", s.settings.RulesURL)
	s.respond.Error(w, r, respond.Failure{Kind: "not_implemented", Code: http.StatusNotImplemented}, err)
}

// shared lets a tenant have at most half of the remote reads that run at once.
func (s *server) shared(next http.Handler) http.Handler {
	return guard.Shared(max(1, s.settings.RemoteReadConcurrency/2), next)
}

// routes registers upstream's API on a router that answers only the routes of served. Methods are
// upstream's.
func (s *server) routes(upstream *v1.API, guarded func(name string, h http.Handler) http.HandlerFunc) http.Handler {
	served := s.served()
	if s.explains != nil {
		served[explainPath] = replace(s.withAsOf(s.respond.JSON(s.explain)))
		served[slicesPath] = replace(s.withAsOf(s.respond.JSON(s.slices)))
		served[costPath], served[rangeCostPath] = replace(s.estimating(false)), replace(s.estimating(true))
	}
	if s.sql != nil {
		served[sqlPath] = replace(s.withAsOf(http.HandlerFunc(s.answerSQL)))
	}
	if s.settings.Rules != nil {
		served["/rules"], served["/alerts"] = replace(s.respond.JSON(s.rules)), replace(s.respond.JSON(s.alerts))
	}
	if s.settings.RulesURL != "" {
		served["/rules"], served["/alerts"] = replace(http.HandlerFunc(s.elsewhere)), replace(http.HandlerFunc(s.elsewhere))
	}
	for path, f := range s.weights.Routes() {
		served[path] = s.queue(replace(s.withAsOf(s.respond.PlainJSON(f))))
	}
	if s.lakes != nil {
		served[lakePath] = s.queue(replace(s.withAsOf(s.respond.JSON(s.lake))))
	}
	if s.pieces != nil {
		served[piecePath] = replace(http.HandlerFunc(s.piece))
	}
	if s.queries != nil {
		served[activePath] = replace(s.active())
		served[spendingPath], served[spendingAllPath] = replace(s.respond.JSON(s.spending)), replace(s.respond.JSON(s.spendingOfAll))
	}
	served[exportPath], served[exportCSVPath] = replace(s.exporting(jsonFormat)), replace(s.exporting(csvFormat))
	hidden, queries := map[string]bool{}, map[string]http.HandlerFunc{}
	router := route.New().WithInstrumentation(func(path string, h http.HandlerFunc) http.HandlerFunc {
		choose, ok := served[path]
		if !ok {
			hidden[path] = true
			return http.NotFound
		}
		handler := choose(h)
		h = guarded(apiPath+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r.WithContext(httputil.ContextWithPath(r.Context(), apiPath+r.URL.Path)))
		}))
		if path == queryPath || path == queryRangePath {
			queries[path] = h
		}
		return h
	})
	upstream.Register(router)
	for _, path := range slices.Concat([]string{explainPath, costPath, rangeCostPath, sqlPath, lakePath, exportPath, exportCSVPath, slicesPath, activePath, spendingPath, spendingAllPath}, weights.Paths) {
		router.Get(path, http.NotFound)
		router.Post(path, http.NotFound)
	}
	router.Post(piecePath, http.NotFound)
	router.Del(activePath, http.NotFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asks := r.Method == http.MethodGet || r.Method == http.MethodPost
		switch query := queries[r.URL.Path]; {
		case query != nil && asks: // the router would make a context for parameters of the path
			query(w, r)
		case hidden[r.URL.Path]:
			http.NotFound(w, r)
		default:
			router.ServeHTTP(w, r)
		}
	})
}

// operatorPaths are the paths below /api/v1 that describe the process and its machine: its flags,
// which may name other tenants and locations of secrets, its working directory and its host; or all
// tenants.
var operatorPaths = []string{"/status/config", "/status/flags", "/status/runtimeinfo", spendingAllPath}

// AdminPatterns returns the patterns of New's handler that change what concerns a tenant.
func AdminPatterns() []string {
	path := apiPath + activePath
	return []string{"DELETE " + path, "DELETE " + mimirPrefix + path}
}

// OperatorPatterns returns the patterns of New's handler that only operators may request. They are
// more specific than those of Patterns, so http.ServeMux prefers them. WithoutOperator removes the
// same paths from the handler of Patterns.
func OperatorPatterns() []string {
	var out []string
	for _, prefix := range []string{"", mimirPrefix} {
		for _, path := range operatorPaths {
			out = append(out, prefix+apiPath+path)
		}
	}
	return out
}

// WithoutOperator returns h with 404 for what OperatorPatterns and AdminPatterns mean. Requests for
// it reach h if http.ServeMux does not match their pattern, as with /api/v1/status%2Fflags.
func WithoutOperator(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, mimirPrefix), apiPath)
		if slices.Contains(operatorPaths, path) || r.Method == http.MethodDelete {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
