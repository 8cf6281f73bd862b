package api_test

import (
	"bytes"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gogo/protobuf/proto"
	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
)

// hostile returns expressions whose parsing took minutes or gigabytes, or crashed the process.
func hostile() map[string]string {
	return map[string]string{
		"calls":       strings.Repeat("ln(", 2_500_000) + "up" + strings.Repeat(")", 2_500_000),
		"brackets":    strings.Repeat("(", 4_900_000) + "1" + strings.Repeat(")", 4_900_000),
		"chain":       "1" + strings.Repeat("-1", 200_000),
		"short calls": strings.Repeat("ln(", 4001) + "up" + strings.Repeat(")", 4001),
		"short chain": "1" + strings.Repeat("-1", 10_000),
		"subqueries":  "up" + strings.Repeat("[1h:1m]", 4001),
	}
}

// expressionRoutes are the routes that take an expression, with their other required parameters.
var expressionRoutes = map[string]string{
	"/api/v1/query":              "query=%",
	"/api/v1/query_range":        "start=0&end=1&step=1&query=%",
	"/api/v1/query_exemplars":    "start=0&end=1&query=%",
	"/api/v1/format_query":       "query=%",
	"/api/v1/parse_query":        "query=%",
	"/api/v1/series":             "match[]=up&match[]=%",
	"/api/v1/labels":             "match[]=%",
	"/api/v1/label/job/values":   "match[]=%",
	"/prometheus/api/v1/query":   "query=%",
	"/federate":                  "match[]=%",
	"/prometheus/federate":       "match[]=%",
	"/api/v1/explain":            "query=%",
	"/api/v1/query_cost":         "query=%",
	"/api/v1/slices":             "start=0&end=1&step=1&query=%",
	"/api/v1/query_range_cost":   "start=0&end=1&step=1&query=%",
	"/prometheus/api/v1/series":  "match[]=%",
	"/prometheus/api/v1/explain": "query=%",
	"/prometheus/api/v1/labels":  "match[]=%",
	"/api/v1/status/buildinfo":   "query=%", // a route without expressions
}

func TestHostileExpressionsAreRefusedBeforeTheyAreParsed(t *testing.T) {
	reg := prometheus.NewRegistry()
	h, err := api.New(testSettings(), explaining{newEmptyBackend(t)}, nil, time.Now, slog.New(slog.DiscardHandler), reg)
	require.NoError(t, err)
	ask := func(t *testing.T, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		require.Equal(t, http.StatusBadRequest, rec.Code, rec.Body.String())
		require.Contains(t, rec.Body.String(), `"errorType":"bad_data"`)
		require.Regexp(t, `limit of (262144 bytes|4000 levels).*--query\.max-expression-(bytes|depth)`, rec.Body.String())
	}
	asked := 0
	for path, params := range expressionRoutes {
		for name, text := range hostile() {
			t.Run(path+" "+name, func(t *testing.T) {
				form := strings.ReplaceAll(params, "%", url.QueryEscape(text))
				if len(form) < 100_000 {
					ask(t, httptest.NewRequest(http.MethodGet, path+"?"+form, nil))
					asked++
				}
				if strings.HasSuffix(path, "/federate") || strings.Contains(path, "/values") || strings.Contains(path, "/status/") || len(form) > 9<<20 {
					return // GET only, or the body is too large
				}
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				ask(t, r)
				asked++
			})
		}
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	require.NoError(t, w.WriteField("query", hostile()["short chain"]))
	require.NoError(t, w.Close())
	// net/http reads a multipart form from either
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		r := httptest.NewRequest(method, "/api/v1/query", bytes.NewReader(body.Bytes()))
		r.Header.Set("Content-Type", w.FormDataContentType())
		ask(t, r)
		asked++
	}
	n, err := testutil.GatherAndCount(reg, "promlake_query_expressions_refused_total")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Greater(t, asked, 60)
}

// TestHostilePatternsAreRefusedBeforeTheyAreCompiled: regular expressions of every parameter, and
// those of a remote read.
func TestHostilePatternsAreRefusedBeforeTheyAreCompiled(t *testing.T) {
	h := newHandler(t, testSettings(), newAsker(t, new(string)))
	selector := url.QueryEscape(`{a=~"(` + strings.Repeat(".*", 600) + `){1000}"}`)
	for path, form := range map[string]string{
		"/api/v1/status/metric_names_stats": "match_pattern=" + strings.Repeat(".*", 1_500_000),
		"/api/v1/status/label_names_stats":  "match_pattern=" + url.QueryEscape(strings.Repeat(`\pL`, 20_000)),
		"/api/v1/export":                    "match=" + selector,
		"/api/v1/export/csv":                "match=" + selector,
		"/api/v1/targets/metadata":          "match_target=" + selector,
		"/api/v1/rules":                     "match[]=" + selector,
		"/api/v1/query":                     "query=" + selector,
		"/federate":                         "match[]=" + selector,
	} {
		rec := get(t, h, path+"?"+form)
		require.Equal(t, http.StatusBadRequest, rec.Code, path)
		require.Contains(t, rec.Body.String(), "--query.max-expression-bytes", path)
	}
	m := &prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: "a", Value: strings.Repeat(".*", 200_000)}
	data, err := proto.Marshal(&prompb.ReadRequest{Queries: []*prompb.Query{{EndTimestampMs: 1, Matchers: []*prompb.LabelMatcher{m}}}})
	require.NoError(t, err)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, data))))
	require.Equal(t, http.StatusBadRequest, rec.Code)
	require.Contains(t, rec.Body.String(), "--query.max-expression-bytes")
}

// TestExpressionsAtTheLimit: expressions within the limits are accepted, and the limit applies to
// all selectors of a request together.
func TestExpressionsAtTheLimit(t *testing.T) {
	h := newHandler(t, testSettings(), newEmptyBackend(t))
	for _, tc := range []struct {
		text string
		code int
	}{
		{"1" + strings.Repeat("-1", 4000), 200},
		{strings.Repeat("(", 4000) + "1" + strings.Repeat(")", 4000), 200},
		{`vector(1) == ` + strings.Repeat("1+ # ((((\n", 900) + "1", 200},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+url.QueryEscape(tc.text), nil))
		require.Equal(t, tc.code, rec.Code, rec.Body.String())
	}
	match := "match[]=" + url.QueryEscape(`{a="`+strings.Repeat("x", 160<<10)+`"}`)
	code := func(form string) int {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/series", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	require.Equal(t, http.StatusOK, code(match))
	require.Equal(t, http.StatusBadRequest, code(match+"&"+match))
}
