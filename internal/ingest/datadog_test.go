package ingest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/senders/datadog"
)

// TestDatadog: what is durable afterwards is what remote-write would have stored, in all modes and
// packings.
func TestDatadog(t *testing.T) {
	v1 := fmt.Sprintf(`{"series":[{"metric":"up","points":[[%d,1]],"tags":["job:test"]}]}`, int64(someTime)/1000)
	v2 := fmt.Sprintf(`{"series":[{"metric":"up","points":[{"timestamp":%d,"value":1}],"tags":["job:test"]}]}`, int64(someTime)/1000)
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	_, err := z.Write([]byte(v2))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	second := int64(someTime) / 1000 * 1000
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for _, tc := range []struct {
			version        datadog.Form
			body, encoding string
			want           string
		}{
			{datadog.V1, v1, "", `{"status":"ok"}`},
			{datadog.V1, gzipped(t, v1), "gzip", `{"status":"ok"}`},
			{datadog.V2, v2, "", `{"errors":[]}`},
			{datadog.V2, deflated.String(), "deflate", `{"errors":[]}`},
		} {
			l := calmIn(t, mode)
			w := l.handle(l.stage.DatadogHandler(tc.version), "/", tc.body, "Content-Encoding", tc.encoding, "Content-Type", "application/json")
			require.Equal(t, http.StatusAccepted, w.Code, w.Body)
			require.JSONEq(t, tc.want, w.Body.String())
			require.Equal(t, want(t, protocolV1, []item{gauge("up", at(second, 1))}), l.read(anonymous))
		}
	}
}

func TestDatadogRefused(t *testing.T) {
	for _, tc := range []struct {
		version      datadog.Form
		target, body string
		headers      []string
		code         int
		want         string
	}{
		{datadog.V1, "/", "x", nil, 400, "invalid series: 'x' at byte 1, where { is expected"},
		{datadog.V2, "/", "\xff", []string{"Content-Type", "application/x-protobuf"}, 400, "invalid series: unexpected EOF"},
		{datadog.V1, "/", "", []string{"Content-Type", "application/x-protobuf"}, 415, "not supported by version 1, only application/json"},
		{datadog.V1, "/", "", []string{"Content-Encoding", "br"}, 415, "br encoding is not supported, only gzip and zstd"},
		{datadog.V1, "/", "x", []string{"Content-Encoding", "deflate"}, 400, "invalid request body: deflate"},
		{datadog.Sketches, "/", "{}", []string{"Content-Type", "application/json"}, 415, "not supported for sketches, only application/x-protobuf"},
		{datadog.Sketches, "/", "x", []string{"Content-Type", "application/x-protobuf"}, 400, "invalid series"},
		{datadog.V1, "/?extra_label=x", "", nil, 400, "must have the form name=value"},
		{datadog.V1, "/", `{"series":[{"points":[[1,1]]}]}`, nil, 400, `"metric" is missing (invalid_data_point)`},
	} {
		l := calm(t)
		w := l.handle(l.stage.DatadogHandler(tc.version), tc.target, tc.body, tc.headers...)
		require.Equal(t, tc.code, w.Code, w.Body)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Contains(t, w.Body.String(), `{"errors":["`)
		for _, part := range bytes.Split([]byte(tc.want), []byte(`"`)) {
			require.Contains(t, w.Body.String(), string(part))
		}
		require.Empty(t, l.keys(anonymous))
	}
}

func TestDatadogAnswer(t *testing.T) {
	w := httptest.NewRecorder()
	DatadogAnswer(http.StatusOK, `{"valid":true}`).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/validate", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"valid":true}`, w.Body.String())
}
