package functions

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/sqstest"
)

const sentAt = 1_764_000_000 // seconds

// protocol is a way to write one sample over HTTP, with the label way.
type protocol struct {
	path, kind string
	status     int
	body       func(way string) string
	metric     string // as PromQL reads it
	value      string
}

// text is a body in which %way% stands for the label's value.
func text(template string) func(way string) string {
	return func(way string) string { return strings.ReplaceAll(template, "%way%", way) }
}

const (
	jsonType  = "application/json"
	protoType = "application/x-protobuf"
)

// otlpMetrics is a gauge with the value 1, as OpenTelemetry's package encodes it.
func otlpMetrics(name string, marshal func(pmetric.Metrics) ([]byte, error)) func(way string) string {
	return func(way string) string {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(sentAt * 1_000_000_000)
		p.SetIntValue(1)
		p.Attributes().PutStr("way", way)
		b, err := marshal(md)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
}

var protocols = map[string]protocol{
	"OTLP, protobuf": {"/v1/metrics", protoType, 200, otlpMetrics("otlp_protobuf", (&pmetric.ProtoMarshaler{}).MarshalMetrics), "otlp_protobuf", "1"},
	"OTLP, JSON":     {"/otlp/v1/metrics", jsonType, 200, otlpMetrics("otlp_json", (&pmetric.JSONMarshaler{}).MarshalMetrics), "otlp_json", "1"},
	"InfluxDB 1":     {"/write?precision=s", "", 204, text("influx,way=%way% one=2 1764000000"), "influx_one", "2"},
	"InfluxDB 2":     {"/influx/api/v2/write?bucket=b&precision=s", "", 204, text("influx,way=%way% two=3 1764000000"), "influx_two", "3"},
	"InfluxDB 3":     {"/api/v3/write_lp?db=b", "", 204, text("influx,way=%way% three=4 1764000000"), "influx_three", "4"},
	"Datadog 1": {"/datadog/api/v1/series", jsonType, 202,
		text(`{"series":[{"metric":"datadog.one","points":[[1764000000,5]],"tags":["way:%way%"]}]}`), "datadog.one", "5"},
	"Datadog 2": {"/api/v2/series", jsonType, 202,
		text(`{"series":[{"metric":"datadog.two","points":[{"timestamp":1764000000,"value":6}],"tags":["way:%way%"]}]}`), "datadog.two", "6"},
	"OpenTSDB": {"/opentsdb/api/put", jsonType, 204,
		text(`[{"metric":"opentsdb","timestamp":1764000000,"value":7,"tags":{"way":"%way%"}}]`), "opentsdb", "7"},
	"CSV":        {"/api/v1/import/csv?format=1:label:way,2:metric:csv,3:time:unix_s", "", 204, text("%way%,8,1764000000\n"), "csv", "8"},
	"JSON lines": {"/api/v1/import", "", 204, text(`{"metric":{"__name__":"json_lines","way":"%way%"},"values":[9],"timestamps":[1764000000000]}`), "json_lines", "9"},
	"text":       {"/api/v1/import/prometheus", "", 204, text("text{way=\"%way%\"} 10 1764000000000\n"), "text", "10"},
}

// TestProtocols: an HTTP API and a function's own URL take every protocol, plain and compressed, in
// both modes of functions, and queries have exactly what was sent.
func TestProtocols(t *testing.T) {
	for _, mode := range []string{"direct", "buffered"} {
		t.Run(mode, func(t *testing.T) {
			sqs, q := sqstest.Start(t), memqueue.New(memqueue.Settings{})
			s := start(t, "PROMLAKE_INGEST_MODE="+mode, "PROMLAKE_INGEST_QUEUE_URL="+sqs.Add("write", q), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
			want := map[string]string{}
			for door, base := range doors(t, s.ingest) {
				for _, name := range slices.Sorted(maps.Keys(protocols)) {
					p := protocols[name]
					for _, encoding := range []string{"", "gzip"} {
						way := door + encoding
						resp, body := post(t, base+p.path, p.kind, encoding, p.body(way))
						require.Equal(t, p.status, resp.StatusCode, "%s, %s: %s", name, way, body)
						want[p.metric+" "+way] = fmt.Sprintf("[%d %s]", sentAt, p.value)
					}
				}
			}
			if mode == "buffered" {
				require.NoDirExists(t, filepath.Join(s.store, "v1"), "nothing is written before the queue delivers")
				s.deliver(t, q)
			}
			require.Equal(t, want, s.byWay(t))
		})
	}
}

// doors returns the addresses of a function behind an HTTP API, and of its own URL.
func doors(t *testing.T, f *emulator.Function) map[string]string {
	t.Helper()
	api := httptest.NewServer(&emulator.Gateway{Routes: map[string]emulator.Invoker{"POST /{proxy+}": f}})
	t.Cleanup(api.Close)
	own := httptest.NewServer(&emulator.URL{Function: f})
	t.Cleanup(own.Close)
	return map[string]string{"gateway": api.URL, "url": own.URL}
}

// post sends a request for the tenant of the recorded queries.
func post(t *testing.T, to, kind, encoding, body string) (*http.Response, string) {
	t.Helper()
	if encoding == "gzip" {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(body))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		body = b.String()
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range map[string]string{"Content-Type": kind, "Content-Encoding": encoding, "X-Scope-OrgID": "team-a"} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(answer)
}

// deliver consumes all messages of the write queue, in one batch.
func (s *stack) deliver(t *testing.T, q *memqueue.Queue) {
	t.Helper()
	var batch event
	for i, m := range q.Messages() {
		one := message(t, "sqs-standard", m.Body)
		one["Records"].([]any)[0].(map[string]any)["messageId"] = strconv.Itoa(i)
		if batch == nil {
			batch = one
		} else {
			batch["Records"] = append(batch["Records"].([]any), one["Records"].([]any)...)
		}
	}
	require.NotNil(t, batch)
	b, err := s.ingest.Invoke(t.Context(), batch.payload(t))
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, string(b))
}

// byWay returns all samples with the label way at the time of the protocols, by metric and label.
func (s *stack) byWay(t *testing.T) map[string]string {
	t.Helper()
	query := url.Values{"query": {`label_join({way!=""}, "instance", " ", "__name__", "way")`}, "time": {strconv.Itoa(sentAt)}}
	return series(t, plain(t, ask(t, s.query, asking(t, "http-api-query", "/api/v1/query", query.Encode()))))
}

// TestRuntimeConfigurationInTheBucket: a function reads the limits of tenants from the store, and
// both doors pass on when a refused request can succeed.
func TestRuntimeConfigurationInTheBucket(t *testing.T) {
	for _, mode := range []string{"direct", "buffered"} {
		t.Run(mode, func(t *testing.T) {
			sqs, q := sqstest.Start(t), memqueue.New(memqueue.Settings{})
			env := []string{
				"PROMLAKE_INGEST_MODE=" + mode, "PROMLAKE_INGEST_QUEUE_URL=" + sqs.Add("write", q), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
				"PROMLAKE_RUNTIME_CONFIG_FILE=store",
			}
			s := start(t, env...)
			document := filepath.Join(s.store, "config", "runtime.yaml")
			require.NoError(t, os.MkdirAll(filepath.Dir(document), 0o700))
			require.NoError(t, os.WriteFile(document, []byte("overrides: {team-a: {ingestion_rate: 0.01, ingestion_burst_size: 5}}"), 0o600))
			to := doors(t, s.ingest)
			const path = "/api/v1/import/prometheus"
			lines := func(way string) string {
				var b strings.Builder
				for i := range 5 {
					fmt.Fprintf(&b, "m%d{way=%q} 1 %d000\n", i, way, sentAt)
				}
				return b.String()
			}
			resp, body := post(t, to["gateway"]+path, "", "", lines("first"))
			require.Equal(t, 204, resp.StatusCode, body)
			for door, base := range to {
				resp, body = post(t, base+path, "", "", lines(door))
				require.Equal(t, 429, resp.StatusCode, "%s: %s", door, body)
				require.Contains(t, body, "ingestion_rate")
				after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
				require.NoError(t, err, door)
				require.Greater(t, after, 400, "five samples take 500 s")
				require.LessOrEqual(t, after, 500)
			}
			resp, body = post(t, to["url"]+path, "", "", lines("a")+lines("b"))
			require.Equal(t, 400, resp.StatusCode, body)
			require.Contains(t, body, "ingestion_burst_size")
			if mode == "buffered" {
				s.deliver(t, q)
			}
			require.Len(t, s.byWay(t), 5)
		})
	}
}
