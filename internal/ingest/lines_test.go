package ingest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// handle sends a body to a handler and returns the answer.
func (l *lake) handle(h http.Handler, target, body string, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if l.queue != nil {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

// TestFileLines writes lines of JSON and CSV in each mode: what is durable afterwards is what
// remote-write would have stored.
func TestFileLines(t *testing.T) {
	jsonLine := fmt.Sprintf(`{"metric":{"__name__":"up"},"values":[1],"timestamps":[%d]}`, int64(someTime))
	csvLine := fmt.Sprintf("1,%d\n", int64(someTime))
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for name, send := range map[string]func(*lake) *httptest.ResponseRecorder{
			"json": func(l *lake) *httptest.ResponseRecorder {
				return l.handle(l.stage.JSONLinesHandler(), "/api/v1/import?extra_label=job=test", jsonLine)
			},
			"json, packed": func(l *lake) *httptest.ResponseRecorder {
				return l.handle(l.stage.JSONLinesHandler(), "/api/v1/import?extra_label=job=test", gzipped(t, jsonLine), "Content-Encoding", "gzip")
			},
			"csv": func(l *lake) *httptest.ResponseRecorder {
				return l.handle(l.stage.CSVHandler(), "/api/v1/import/csv?extra_label=job=test&format=1:metric:up,2:time:unix_ms", csvLine)
			},
			"csv, packed": func(l *lake) *httptest.ResponseRecorder {
				return l.handle(l.stage.CSVHandler(), "/api/v1/import/csv?extra_label=job=test&format=1:metric:up,2:time:unix_ms", zstandard(t, csvLine), "Content-Encoding", "zstd")
			},
		} {
			t.Run(fmt.Sprintf("%s/%s", mode, name), func(t *testing.T) {
				l := calmIn(t, mode)
				w := send(l)
				require.Equal(t, http.StatusNoContent, w.Code, w.Body)
				require.Equal(t, want(t, protocolV1, []item{gauge("up", at(someTime, 1))}), l.read(anonymous))
			})
		}
	}
}

func TestFileLinesRefused(t *testing.T) {
	l := calm(t)
	for _, tc := range []struct {
		h            http.Handler
		target, body string
		code         int
		want         string
	}{
		{l.stage.JSONLinesHandler(), "/", "x", 400, "line 1: 'x' at byte 1, where { is expected (invalid_line)"},
		{l.stage.JSONLinesHandler(), "/?extra_label=x", "", 400, "extra_label: "},
		{l.stage.CSVHandler(), "/", "1\n", 400, "format: "},
		{l.stage.CSVHandler(), "/?format=1:label:x", "1\n", 400, "format: no column is a metric"},
		{l.stage.CSVHandler(), "/?format=1:metric:x", "one\n", 400, `line 1: column 1: "one" is not a number (invalid_line)`},
	} {
		w := l.handle(tc.h, tc.target, tc.body)
		require.Equal(t, tc.code, w.Code)
		require.Contains(t, w.Body.String(), tc.want)
	}
	require.Empty(t, l.keys(anonymous))
}
