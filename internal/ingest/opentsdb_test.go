package ingest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenTSDB: what is durable afterwards is what remote-write would have stored.
func TestOpenTSDB(t *testing.T) {
	body := fmt.Sprintf(`{"metric":"up","timestamp":%d,"value":1,"tags":{"job":"test"}}`, int64(someTime))
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for _, packed := range []bool{false, true} {
			l := calmIn(t, mode)
			sent, headers := body, []string(nil)
			if packed {
				sent, headers = gzipped(t, body), []string{"Content-Encoding", "gzip"}
			}
			w := l.handle(l.stage.OpenTSDBHandler(), "/api/put", sent, headers...)
			require.Equal(t, http.StatusNoContent, w.Code, w.Body)
			require.Empty(t, w.Body.String())
			require.Equal(t, want(t, protocolV1, []item{gauge("up", at(someTime, 1))}), l.read(anonymous))
		}
	}
}

func TestOpenTSDBAnswers(t *testing.T) {
	good := fmt.Sprintf(`{"metric":"up","timestamp":%d,"value":1}`, int64(someTime))
	bad := `{"metric":"up","value":1}`
	const why = `data point 2: \"timestamp\" is missing (invalid_data_point)`
	for _, tc := range []struct {
		parameters, body string
		code             int
		want             string
	}{
		{"", good, 204, ""},
		{"?summary", good, 200, `{"failed":0,"success":1}`},
		{"?details", "[" + good + "," + good + "]", 200, `{"errors":[],"failed":0,"success":2}`},
		{"", "[" + good + "," + bad + "]", 400, `{"error":{"code":400,"message":"` + why + `"}}`},
		{"?summary", "[" + good + "," + bad + "]", 400, `{"failed":1,"success":1}`},
		{"?details", "[" + good + "," + bad + "," + bad + "]", 400, `{"errors":[{"error":"` + why + `"}],"failed":2,"success":1}`},
		{"?details", "x", 400, `{"error":{"code":400,"message":"invalid data points: data point 1: 'x' at byte 1, where { is expected"}}`},
		{"?extra_label=x", good, 400, `{"error":{"code":400,"message":"extra_label: label \"x\" must have the form name=value"}}`},
	} {
		l := calm(t)
		w := l.handle(l.stage.OpenTSDBHandler(), "/api/put"+tc.parameters, tc.body)
		require.Equal(t, tc.code, w.Code, tc)
		if tc.want != "" {
			require.JSONEq(t, tc.want, w.Body.String(), tc)
		}
	}
}
