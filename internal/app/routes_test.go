package app_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/process"
)

// access is the right that each route of all programs requires. A new route needs a line here.
var access = map[string]auth.Access{
	"GET /{$}":           auth.Public,
	"GET /assets/{file}": auth.Public,
	"GET /dashboards":    auth.Public,

	"GET /api/v1/dashboards":              auth.Read,
	"GET /api/v1/dashboards/{name...}":    auth.Read,
	"PUT /api/v1/dashboards/{name...}":    auth.Admin,
	"DELETE /api/v1/dashboards/{name...}": auth.Admin,

	"/api/v1/":        auth.Read,
	"/federate":       auth.Read,
	"/api/v1/write":   auth.Write,
	"/api/v1/push":    auth.Write,
	"POST /-/compact": auth.Operate,
	"POST /-/reload":  auth.Operate,
	"PUT /-/reload":   auth.Operate,

	"GET /config/v1/rules":                            auth.Read,
	"GET /config/v1/rules/{names...}":                 auth.Read,
	"POST /config/v1/rules/{names...}":                auth.Admin,
	"DELETE /config/v1/rules/{names...}":              auth.Admin,
	"DELETE /api/v1/status/active_queries":            auth.Admin,
	"DELETE /prometheus/api/v1/status/active_queries": auth.Admin,
	"GET /prometheus/config/v1/rules":                 auth.Read,
	"GET /prometheus/config/v1/rules/{names...}":      auth.Read,
	"POST /prometheus/config/v1/rules/{names...}":     auth.Admin,
	"DELETE /prometheus/config/v1/rules/{names...}":   auth.Admin,

	"GET /alertmanager/api/v2/silences":        auth.Read,
	"POST /alertmanager/api/v2/silences":       auth.Admin,
	"DELETE /alertmanager/api/v2/silence/{id}": auth.Admin,

	"GET /metrics/node": auth.Operate,
	"GET /api/v1/demo":  auth.Operate,
	"POST /api/v1/demo": auth.Operate,
	"GET /graph":        auth.Public,

	"POST /api/v1/import/prometheus":            auth.Write,
	"POST /prometheus/api/v1/import/prometheus": auth.Write,
	"POST /api/v1/import":                       auth.Write,
	"POST /prometheus/api/v1/import":            auth.Write,
	"POST /api/v1/import/csv":                   auth.Write,
	"POST /prometheus/api/v1/import/csv":        auth.Write,

	"POST /datadog/api/v1/series":     auth.Write,
	"POST /datadog/api/v2/series":     auth.Write,
	"POST /datadog/api/beta/sketches": auth.Write,
	"POST /api/v2/series":             auth.Write,
	"GET /datadog/api/v1/validate":    auth.Write,
	"GET /api/v1/validate":            auth.Write,
	"POST /datadog/api/v1/check_run":  auth.Write,
	"POST /datadog/api/v1/metadata":   auth.Write,
	"POST /datadog/intake/":           auth.Write,

	"PUT /metrics/{group...}":                             auth.Write,
	"POST /metrics/{group...}":                            auth.Write,
	"DELETE /metrics/{group...}":                          auth.Write,
	"PUT /api/v1/import/prometheus/metrics/{group...}":    auth.Write,
	"POST /api/v1/import/prometheus/metrics/{group...}":   auth.Write,
	"DELETE /api/v1/import/prometheus/metrics/{group...}": auth.Write,

	"POST /api/v1/upload/block/{block}/start":  auth.Write,
	"POST /api/v1/upload/block/{block}/files":  auth.Write,
	"POST /api/v1/upload/block/{block}/finish": auth.Write,
	"GET /api/v1/upload/block/{block}/check":   auth.Write,

	"GET /api/v1/status/refused":              auth.Read,
	"GET /prometheus/api/v1/status/refused":   auth.Read,
	"POST /api/put":                           auth.Write,
	"POST /opentsdb/api/put":                  auth.Write,
	"POST /api/v1/otlp/v1/metrics":            auth.Write,
	"POST /prometheus/api/v1/otlp/v1/metrics": auth.Write,
	"POST /otlp/v1/metrics":                   auth.Write,
	"POST /opentelemetry/v1/metrics":          auth.Write,
	"POST /v1/metrics":                        auth.Write,

	"POST /write":                  auth.Write,
	"POST /influx/write":           auth.Write,
	"POST /api/v2/write":           auth.Write,
	"POST /influx/api/v2/write":    auth.Write,
	"POST /api/v3/write_lp":        auth.Write,
	"POST /influx/api/v3/write_lp": auth.Write,
	"GET /query":                   auth.Write,
	"POST /query":                  auth.Write,
	"GET /influx/query":            auth.Write,
	"POST /influx/query":           auth.Write,
	"GET /ping":                    auth.Public,
	"GET /influx/ping":             auth.Public,

	"GET /api/v1/status/doctor":                  auth.Operate,
	"GET /api/v1/status/tenants":                 auth.Operate,
	"/api/v1/status/config":                      auth.Operate,
	"/api/v1/status/flags":                       auth.Operate,
	"/api/v1/status/runtimeinfo":                 auth.Operate,
	"/api/v1/status/spending/tenants":            auth.Operate,
	"/prometheus/api/v1/status/spending/tenants": auth.Operate,
	"/prometheus/api/v1/status/config":           auth.Operate,
	"/prometheus/api/v1/status/flags":            auth.Operate,
	"/prometheus/api/v1/status/runtimeinfo":      auth.Operate,

	"/api/v1/admin/tsdb/delete_series":    auth.Admin,
	"/api/v1/admin/tsdb/clean_tombstones": auth.Admin,

	"/prometheus/api/v1/":                            auth.Read,
	"/prometheus/federate":                           auth.Read,
	"/prometheus/api/v1/write":                       auth.Write,
	"/prometheus/api/v1/push":                        auth.Write,
	"/prometheus/api/v1/admin/tsdb/delete_series":    auth.Admin,
	"/prometheus/api/v1/admin/tsdb/clean_tombstones": auth.Admin,
}

// below are paths under the patterns that end in a slash.
var below = []string{
	"query", "query_range", "query_exemplars", "series", "labels", "label/job/values", "metadata", "read", "explain", "sql", "format_query", "rules",
	"status/buildinfo", "status/tsdb", "status/lake", "status/metric_names_stats", "status/label_names_stats", "status/active_queries", "status/spending", "cardinality/label_names", "cardinality/label_values", "cardinality/active_series", "admin/tsdb/snapshot", "nothing",
}

// watched has a stage's routes with handlers that only record that they were reached.
type watched struct {
	process.Stage
	reached *atomic.Int64
	routes  *[]process.Route
}

func (w watched) Routes() []process.Route {
	all := w.Stage.Routes()
	for i := range all {
		all[i].Handler = http.HandlerFunc(func(w2 http.ResponseWriter, r *http.Request) {
			w.reached.Add(1)
			w2.Header().Set("X-Tenant", r.Header.Get(tenant.Header))
		})
	}
	*w.routes = append(*w.routes, all...)
	return all
}

// everything opens the stages of all programs behind a guard, and returns their routes and the
// number of requests that reached a stage.
func everything(t *testing.T, tokens string) (http.Handler, []process.Route, *atomic.Int64) {
	t.Helper()
	s := defaults()
	s.Compaction.Enabled, s.Process.Store, s.Process.Auth.Tokens = false, "file://"+t.TempDir(), tokens
	s.Demo = true
	s.Prometheus.ConfigFile, s.Prometheus.Queue.Dir = filepath.Join(t.TempDir(), "prometheus.yml"), t.TempDir()
	require.NoError(t, os.WriteFile(s.Prometheus.ConfigFile, nil, 0o600))
	reached, routes := &atomic.Int64{}, []process.Route{}
	var all []process.Builder
	for _, b := range append(app.Builders(s, io.Discard), compactapp.OnRequest(compactapp.DefaultSettings(), compactapp.Workers{})) {
		all = append(all, func(ctx context.Context, p process.Parts) (process.Stage, error) {
			stage, err := b(ctx, p)
			return watched{stage, reached, &routes}, err
		})
	}
	h, end, err := process.Open(t.Context(), s.Process, slog.New(slog.DiscardHandler), all...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, end()) })
	return h, routes, reached
}

// paths returns the request paths that test a pattern.
func paths(pattern string) []string {
	_, path, found := strings.Cut(pattern, " ")
	if !found {
		path = pattern
	}
	path = strings.TrimSuffix(path, "{$}")
	out := []string{path}
	if !found && strings.HasSuffix(path, "/") {
		for _, b := range below {
			out = append(out, path+b)
		}
	}
	return out
}

// tokensFile writes a document with a token for each kind of access; its name is the token.
func tokensFile(t *testing.T) string {
	t.Helper()
	d := auth.Document{Version: auth.Version}
	for _, name := range []string{"read", "write", "admin"} {
		e, err := auth.NewEntry("team-"+name, []string{"team"}, []string{name}, "")
		require.NoError(t, err)
		d.Tokens = append(d.Tokens, e)
	}
	e, err := auth.NewEntry("any-admin", []string{"*"}, []string{"admin"}, "")
	require.NoError(t, err)
	d.Tokens = append(d.Tokens, e)
	return "file:" + writeDocument(t, filepath.Join(t.TempDir(), "tokens.json"), d)
}

func writeDocument(t *testing.T, file string, d auth.Document) string {
	t.Helper()
	text, err := d.Text()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".new", text, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
	return file
}

func TestEveryRouteHasItsAccess(t *testing.T) {
	_, routes, _ := everything(t, "")
	got := map[string]auth.Access{}
	for _, r := range routes {
		got[r.Pattern] = r.Access
	}
	require.Equal(t, access, got)
}

// TestNoRequestReachesAStageWithoutItsToken tries all routes with all methods and everything that
// could pass for a token.
func TestNoRequestReachesAStageWithoutItsToken(t *testing.T) {
	h, routes, reached := everything(t, tokensFile(t))
	sent := 0
	ask := func(method, path string, header http.Header) (int, string, bool) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://promlake"+path+"?query=up&match[]=up", http.NoBody)
		require.NoError(t, err)
		r.Header = header
		w := &recorded{header: http.Header{}}
		before := reached.Load()
		h.ServeHTTP(w, r)
		sent++
		return w.code, w.header.Get("X-Tenant"), reached.Load() > before
	}
	orgID := http.CanonicalHeaderKey(tenant.Header)
	bad := []http.Header{
		{},
		{orgID: {"team"}},
		{"Authorization": {"Bearer wrong"}, orgID: {"team"}},
		{"Authorization": {"Bearer "}},
		{"Authorization": {"Bearer team-read team-write"}},
		{"Authorization": {"Bearer " + auth.SumOf("any-admin")}},
		{"Authorization": {"team-read"}},
		{"Authorization": {"Basic dGVhbS1yZWFkOg=="}}, // the token as the user's name
		{"Authorization": {"Bearer any-admin", "Bearer any-admin"}},
		{"Cookie": {"token=any-admin"}, "X-Authorization": {"Bearer any-admin"}},
		{"Origin": {"https://evil"}},
		{"Authorization": {"Bearer team-read"}, orgID: {"other"}},
		{"Authorization": {"Bearer team-read"}, orgID: {"team", "other"}},
		{"Authorization": {"Bearer team-write"}, orgID: {"other"}},
	}
	for _, r := range routes {
		if r.Access == auth.Public {
			continue // TestEveryRouteHasItsAccess names the few
		}
		for _, path := range paths(r.Pattern) {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "BREW"} {
				for _, header := range bad {
					code, _, ok := ask(method, path, header)
					require.False(t, ok, "%s %s %v: %d", method, path, header, code)
					require.GreaterOrEqual(t, code, 300, "%s %s %v", method, path, header)
				}
			}
			for token, gives := range map[string][]auth.Access{
				"team-read": {auth.Read}, "team-write": {auth.Write}, "team-admin": {auth.Admin}, "any-admin": {auth.Admin, auth.Operate},
			} {
				code, id, ok := ask(methodOf(r.Pattern), path, http.Header{"Authorization": {"Bearer " + token}})
				want := false
				for _, a := range gives {
					want = want || a == r.Access
				}
				require.Equal(t, want, ok, "%s %s: %d", token, path, code)
				if want && strings.HasPrefix(token, "team") {
					require.Equal(t, "team", id, "%s %s", token, path)
				}
				if !want {
					require.Equal(t, http.StatusForbidden, code)
				}
			}
		}
	}
	require.Greater(t, sent, 5000)
}

func methodOf(pattern string) string {
	if method, _, ok := strings.Cut(pattern, " "); ok {
		return method
	}
	return http.MethodPost
}

// recorded keeps the head of an answer. It implements http.ResponseWriter.
type recorded struct {
	header http.Header
	code   int
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorded) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return len(p), nil
}
