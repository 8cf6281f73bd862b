package ingest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
)

// text sends metrics as text and returns the answer.
func (l *lake) text(target, body string, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.stage.TextHandler().ServeHTTP(w, r)
	if l.queue != nil {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

// TestText writes both text formats in each mode: what is durable afterwards is what remote-write
// would have stored.
func TestText(t *testing.T) {
	const path = "/api/v1/import/prometheus?extra_label=job%3Dtest"
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for name, tc := range map[string]struct {
			target, body string
			headers      []string
		}{
			"text":           {path, fmt.Sprintf("# HELP up Up.\n# TYPE up gauge\nup 1 %d\n", int64(someTime)), nil},
			"gzip":           {path, gzipped(t, fmt.Sprintf("# HELP up Up.\n# TYPE up gauge\nup 1 %d\n", int64(someTime))), []string{"Content-Encoding", "gzip"}},
			"form, no end":   {path, "# HELP up Up.\n# TYPE up gauge\nup{job=\"x\"} 1", []string{"Content-Type", "application/x-www-form-urlencoded"}},
			"a time for all": {fmt.Sprintf("%s&timestamp=%d", path, int64(someTime)), "# TYPE up gauge\n# HELP up Up.\nup 1\n", nil},
			"OpenMetrics":    {path, "# HELP up Up.\n# TYPE up gauge\nup 1\n# EOF\n", []string{"Content-Type", "application/openmetrics-text; version=1.0.0"}},
		} {
			t.Run(fmt.Sprintf("%s/%s", mode, name), func(t *testing.T) {
				l := calmIn(t, mode)
				w := l.text(tc.target, tc.body, tc.headers...)
				require.Equal(t, http.StatusNoContent, w.Code, w.Body)
				require.Equal(t, want(t, protocolV1, []item{gauge("up", at(someTime, 1))}), l.read(anonymous))
				require.Equal(t, []segment.Metadata{{Metric: "up", Type: "gauge", Help: "Up."}}, l.info(l.keys(anonymous)[0]).Metadata)
			})
		}
	}
}

func TestTextRefused(t *testing.T) {
	for _, tc := range []struct {
		target, body string
		headers      []string
		code, stored int
		want         string
	}{
		{"/?extra_label=job", "up 1\n", nil, 400, 0, `extra_label: label "job" must have the form name=value`},
		{"/?timestamp=now", "up 1\n", nil, 400, 0, `timestamp "now" is not a number of milliseconds`},
		{"/", "up 1\nup{ 2\n", nil, 400, 0, "invalid metrics: "},
		{"/", "up 1\n", []string{"Content-Type", "application/openmetrics-text"}, 400, 0, "invalid metrics: "},
		{"/", "up 1\n", []string{"Content-Type", "application/vnd.google.protobuf"}, 415, 0, "only text/plain and application/openmetrics-text"},
		{"/", "up 1\n", []string{"Content-Encoding", "br"}, 415, 0, "br encoding is not supported, only gzip and zstd"},
		{"/", "up 1 99999999999999\nok 1\n", nil, 400, 1, "too_far_in_future"},
		{"/?extra_label=__name__%3Dx", "up 1\n", nil, 204, 1, ""},
	} {
		t.Run(fmt.Sprintf("%s %.30q", tc.target, tc.want), func(t *testing.T) {
			l := calm(t)
			w := l.text(tc.target, tc.body, tc.headers...)
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Contains(t, w.Body.String(), tc.want)
			require.Len(t, l.keys(anonymous), tc.stored)
		})
	}
}
