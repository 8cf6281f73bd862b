package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/route"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
)

// closedRoutes are upstream's routes that this API does not have. A change that opens one deletes
// it here.
var closedRoutes = []string{
	"/admin/tsdb/clean_tombstones", "/admin/tsdb/delete_series", "/admin/tsdb/snapshot",
	"/notifications", "/notifications/live",
	"/openapi.yaml",
	"/otlp/v1/metrics", "/write",
	"/search/label_names", "/search/label_values", "/search/metric_names",
	"/status/self_metrics",
}

func TestClosedRoutesDoNotExist(t *testing.T) {
	h := newHandler(t, testSettings(), newEmptyBackend(t))
	for _, path := range append([]string{"/push"}, closedRoutes...) {
		for _, prefix := range []string{"/api/v1", "/prometheus/api/v1"} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodOptions} {
				if path == "/push" && method == http.MethodOptions {
					continue // not upstream's: a preflight of any path succeeds
				}
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, httptest.NewRequest(method, prefix+path, strings.NewReader("")))
				require.Equal(t, http.StatusNotFound, rec.Code, "%s %s", method, prefix+path)
			}
		}
	}
}

func TestEveryRouteOfUpstreamIsDecided(t *testing.T) {
	backend := newEmptyBackend(t)
	h := newHandler(t, testSettings(), backend)
	closed := map[string]bool{}
	for _, path := range closedRoutes {
		closed[path] = true
	}
	var paths []string
	router := route.New().WithInstrumentation(func(path string, _ http.HandlerFunc) http.HandlerFunc {
		paths = append(paths, path)
		return http.NotFound
	})
	upstreamAPI(t, backend, testSettings()).Register(router)
	for _, path := range paths {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodTrace, "/api/v1"+strings.ReplaceAll(path, ":name", "x"), nil))
		switch {
		case path == "/*path":
		case closed[path]:
			require.Equal(t, http.StatusNotFound, rec.Code, path)
		default:
			require.Equal(t, http.StatusMethodNotAllowed, rec.Code, "%s is neither served nor in closedRoutes", path)
		}
	}
}

func TestOutsidePaths(t *testing.T) {
	h := newHandler(t, testSettings(), newEmptyBackend(t))
	for _, path := range []string{"/", "/metrics", "/api/v2/query", "/prometheus", "/prometheus/", "/federate/x", "/-/ready"} {
		require.Equal(t, http.StatusNotFound, get(t, h, path).Code, path)
	}
}

func TestPatternsMountTheHandler(t *testing.T) {
	h := newHandler(t, testSettings(), newEmptyBackend(t))
	mux := http.NewServeMux()
	for _, pattern := range api.Patterns(api.Settings{}) {
		mux.Handle(pattern, h)
	}
	mux.HandleFunc("POST /api/v1/write", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, tc := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/api/v1/query?query=1", 200},
		{"GET", "/prometheus/api/v1/query?query=1", 200},
		{"GET", "/federate?match[]=up", 200},
		{"GET", "/prometheus/federate?match[]=up", 200},
		{"POST", "/federate?match[]=up", 405},
		{"POST", "/api/v1/write", 418},
		{"GET", "/api/v1/write", 404},
		{"GET", "/", 418},
	} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest(tc.method, tc.path, nil))
		require.Equal(t, tc.code, rec.Code, "%s %s", tc.method, tc.path)
	}
}
