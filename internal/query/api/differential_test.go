package api_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// httpRequest is one request that both servers must answer with the same status, headers and bytes.
type httpRequest struct {
	method string // GET if empty
	path   string // below /api/v1
	form   string // a form in the body
	header http.Header
}

func (q httpRequest) String() string {
	s := strings.TrimSpace(fmt.Sprintf("%s %s %s", q.method, q.path, q.form))
	for name := range q.header {
		s += " " + name + ":" + q.header.Get(name)
	}
	return s
}

// comparedHeaders are the headers that determine how clients read a response.
var comparedHeaders = []string{
	"Content-Type", "Content-Encoding", "Vary", "Allow", "Location",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers",
}

// timings matches the statistics that differ between runs.
var timings = regexp.MustCompile(`"timings":\{[^}]*\}`)

func TestSameAsUpstream(t *testing.T) {
	backend, settings := newBackend(t), testSettings()
	want := reference(t, backend, settings)
	got := serve(t, newHandler(t, settings, backend))
	seen, codes := map[string]bool{}, map[int]bool{}
	for _, group := range [][]httpRequest{
		instantRequests(), rangeRequests(), postedRequests(), seriesRequests(), exemplarRequests(), serverRequests(), headerRequests(),
	} {
		for _, q := range group {
			require.False(t, seen[q.String()], "request listed twice: %s", q)
			seen[q.String()] = true
			t.Run(q.String(), func(t *testing.T) {
				expected := send(t, want+"/api/v1", q)
				codes[expected.code] = true
				require.Equal(t, expected, send(t, got+"/api/v1", q))
				require.Equal(t, expected, send(t, got+"/prometheus/api/v1", q), "under Mimir's prefix")
			})
		}
	}
	for _, code := range []int{200, 204, 307, 400, 404, 405, 422} {
		require.True(t, codes[code], "no request was answered with %d", code)
	}
}

type answer struct {
	code   int
	header map[string]string
	body   string
}

func send(t testing.TB, base string, q httpRequest) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), q.method, base+q.path, strings.NewReader(q.form))
	require.NoError(t, err)
	if q.form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	resp, err := client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	a := answer{code: resp.StatusCode, header: map[string]string{}, body: readAll(t, resp.Body)}
	for _, name := range comparedHeaders {
		a.header[name] = strings.Join(resp.Header.Values(name), ", ")
	}
	if a.header["Content-Encoding"] == "gzip" {
		zip, err := gzip.NewReader(strings.NewReader(a.body))
		require.NoError(t, err)
		if a.body = readAll(t, zip); len(a.body) < 1<<10 {
			a.header["Content-Encoding"] = "" // upstream also compresses what fits into a packet
		}
	}
	// A redirect has the requested path in its header and its body.
	a.header["Location"] = strings.TrimPrefix(a.header["Location"], "/prometheus")
	a.body = strings.ReplaceAll(a.body, "/prometheus/api/", "/api/")
	a.body = timings.ReplaceAllString(a.body, `"timings":{}`)
	return a
}

// params builds a path with an encoded query from name, value, name, value …
func params(path string, pairs ...string) httpRequest {
	return httpRequest{path: path + "?" + encode(pairs)}
}

func encode(pairs []string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func post(path string, pairs ...string) httpRequest {
	return httpRequest{method: http.MethodPost, path: path, form: encode(pairs)}
}
