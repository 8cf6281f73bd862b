package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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
		{"?details", "[" + good + ", " + bad + " ," + bad + "]", 400, `{"errors":[{"datapoint":` + bad + `,"error":"` + why + `"},{"datapoint":` + bad + `,"error":"` + strings.Replace(why, "2", "3", 1) + `"}],"failed":2,"success":1}`},
		{"?details", bad, 400, `{"errors":[{"datapoint":` + bad + `,"error":"` + strings.Replace(why, "2", "1", 1) + `"}],"failed":1,"success":0}`},
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

// TestOpenTSDBDetails: each refused data point is described, as far as there is room, whatever was
// wrong with it.
func TestOpenTSDBDetails(t *testing.T) {
	at := int64(someTime)
	points := []struct{ point, why string }{
		{fmt.Sprintf(`{"metric":"","timestamp":%d,"value":1}`, at), "has no metric name"},
		{fmt.Sprintf(`{"metric":"up","timestamp":%d,"value":1}`, at), ""},
		{`{"metric":"up","timestamp":9000000000000,"value":1}`, "too far in the future"},
		{`{"metric":"up","value":1,"tags":{"a":"}]\""}}`, `data point 4: "timestamp" is missing`},
		{fmt.Sprintf(`{"metric":"up","timestamp":%d,"value":1,"tags":{"a":"%s"}}`, at, strings.Repeat("x", 3000)), "longer than the limit"},
	}
	var texts []string
	want := map[string]string{}
	for i, p := range points {
		texts = append(texts, p.point)
		switch {
		case len(p.point) > maxOriginal:
			want[""] = p.why
		case i != 1:
			want[p.point] = p.why
		}
	}
	ask := func(body string) (answer struct {
		Failed, Success int
		Errors          []struct {
			Datapoint json.RawMessage
			Error     string
		}
	}) {
		l := calm(t)
		w := l.handle(l.stage.OpenTSDBHandler(), "/api/put?details", body)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body)
		return answer
	}
	answer := ask("[" + strings.Join(texts, ",") + "]")
	require.Equal(t, 4, answer.Failed)
	require.Equal(t, 1, answer.Success)
	require.Len(t, answer.Errors, len(want))
	for _, e := range answer.Errors {
		require.Contains(t, e.Error, want[string(e.Datapoint)])
	}
	answer = ask("[" + strings.Repeat(`{"metric":"up","value":1},`, 500) + texts[1] + "]")
	require.Equal(t, 500, answer.Failed)
	require.Equal(t, 1, answer.Success)
	require.Len(t, answer.Errors, maxOffences)
}
