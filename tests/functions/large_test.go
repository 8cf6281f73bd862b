package functions

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
)

// TestLargeAnswers requests answers that exceed the limit of an answer that is not streamed.
func TestLargeAnswers(t *testing.T) {
	const seriesCount, samples, steps, at = 300, 1000, 1000, 1764000000
	s := start(t, "PROMLAKE_INGEST_MODE=direct")
	var r prompb.WriteRequest
	for i := range seriesCount {
		one := prompb.TimeSeries{Labels: []prompb.Label{{Name: model.MetricNameLabel, Value: "m"}, {Name: "instance", Value: fmt.Sprint(i)}}}
		for j := range int64(samples) {
			one.Samples = append(one.Samples, prompb.Sample{Timestamp: (at + 15*(j-samples+1)) * 1000, Value: 0.12345678})
		}
		r.Timeseries = append(r.Timeseries, one)
	}
	b, err := r.Marshal()
	require.NoError(t, err)
	write := recorded(t, "http-api-write-v1")
	write["body"] = base64.StdEncoding.EncodeToString(snappy.Encode(nil, b))
	require.Equal(t, 204, ask(t, s.ingest, write).Status)

	question := fmt.Sprintf("query=last_over_time(m[30d])&start=%d&end=%d&step=60", at, at+60*(steps-1))
	gateway, url := asking(t, "http-api-query", "/api/v1/query_range", question), asking(t, "function-url-query", "/api/v1/query_range", question)
	for _, e := range []event{gateway, url} {
		delete(e["headers"].(map[string]any), "accept-encoding")
	}
	a := ask(t, s.query, gateway)
	require.Equal(t, 422, a.Status)
	require.Contains(t, a.Body, `"errorType":"execution","error":"the answer is larger than the 6291556 bytes`)

	a = ask(t, s.query, url)
	require.Greater(t, len(a.Body), emulator.MaxPayload)
	require.Len(t, series(t, a), seriesCount)

	gateway["headers"].(map[string]any)["accept-encoding"] = "gzip"
	require.Len(t, series(t, plain(t, ask(t, s.query, gateway))), seriesCount, "compressed it is small enough")

	// Handlers that send their answers in parts stop when a part is refused.
	for _, way := range []struct{ path, parameters string }{
		{"/api/v1/sql", "query=SELECT range AS n, hash(range) AS h FROM range(300000)"},
		{"/api/v1/sql", "format=csv&query=SELECT range AS n, hash(range) AS h FROM range(300000)"},
		{"/api/v1/query", fmt.Sprintf("query=m[30d]&time=%d", at+60)},
		{"/api/v1/export", fmt.Sprintf("match[]=m&start=%d&end=%d", at-15*samples, at)},
	} {
		e := asking(t, "http-api-query", way.path, strings.ReplaceAll(way.parameters, " ", "%20"))
		delete(e["headers"].(map[string]any), "accept-encoding")
		a := ask(t, s.query, e)
		require.Equal(t, 422, a.Status, "%s: %.300s", way, a.Body)
		require.Contains(t, a.Body, `"errorType":"execution","error":"the answer is larger than the 6291556 bytes`)
	}
}
