package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/senders/otlp"
)

// otlp sends metrics and returns the answer.
func (l *lake) otlp(body string, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/metrics", strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.stage.OTLPHandler().ServeHTTP(w, r)
	if l.queue != nil {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

// upMetrics has a gauge up of a job at a time (ms), and deltas of a sum that may fall.
func upMetrics(at int64, deltas int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "test")
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	m := ms.AppendEmpty()
	m.SetName("up")
	m.SetDescription("Up.")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at * 1_000_000))
	p.SetIntValue(1)
	m = ms.AppendEmpty()
	m.SetName("events")
	s := m.SetEmptySum()
	s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for range deltas {
		p := s.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(at * 1_000_000))
		p.SetIntValue(1)
	}
	return md
}

func protoOf(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	out, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(out)
}

func jsonOf(t *testing.T, md pmetric.Metrics) string {
	t.Helper()
	out, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(out)
}

func zstandard(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	z, err := zstd.NewWriter(&out) // a stream, whose header has no size
	require.NoError(t, err)
	_, err = z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.String()
}

// TestOTLP writes both forms in each mode and with each compression: what is durable afterwards is
// what remote-write would have stored.
func TestOTLP(t *testing.T) {
	md := upMetrics(int64(someTime), 0)
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for kind, text := range map[string]string{otlp.Protobuf: protoOf(t, md), otlp.JSON: jsonOf(t, md)} {
			for packing, body := range map[string]string{"": text, "gzip": gzipped(t, text), "zstd": zstandard(t, text)} {
				t.Run(fmt.Sprintf("%s/%s/%s", mode, kind, packing), func(t *testing.T) {
					l := calmIn(t, mode)
					w := l.otlp(body, "Content-Type", kind+"; charset=utf-8", "Content-Encoding", packing)
					require.Equal(t, http.StatusOK, w.Code, w.Body)
					require.Equal(t, kind, w.Header().Get("Content-Type"))
					require.Equal(t, string(otlp.Accepted(kind, 0, "")), w.Body.String())
					require.Equal(t, want(t, protocolV1, []item{gauge("up", at(someTime, 1))}), l.read(anonymous))
					require.Equal(t, []segment.Metadata{{Metric: "up", Type: "gauge", Help: "Up."}}, l.info(l.keys(anonymous)[0]).Metadata)
				})
			}
		}
	}
}

// TestOTLPPartial: what is refused is counted in an answer with status 200, and the rest is stored.
func TestOTLPPartial(t *testing.T) {
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		l := calmIn(t, mode)
		w := l.otlp(protoOf(t, upMetrics(int64(someTime), 3)), "Content-Type", otlp.Protobuf)
		require.Equal(t, http.StatusOK, w.Code)
		answer := pmetricotlp.NewExportResponse()
		require.NoError(t, answer.UnmarshalProto(w.Body.Bytes()))
		require.EqualValues(t, 3, answer.PartialSuccess().RejectedDataPoints())
		require.Contains(t, answer.PartialSuccess().ErrorMessage(), `metric "events": a sum that is not monotonic is refused with delta temporality`)
		require.Contains(t, answer.PartialSuccess().ErrorMessage(), "otlp.native-delta-ingestion")
		require.Len(t, l.keys(anonymous), 1)

		w = l.otlp(jsonOf(t, upMetrics(int64(someTime), 2)), "Content-Type", otlp.JSON)
		require.NoError(t, answer.UnmarshalJSON(w.Body.Bytes()))
		require.EqualValues(t, 2, answer.PartialSuccess().RejectedDataPoints())
	}
}

func TestOTLPRefused(t *testing.T) {
	good := protoOf(t, upMetrics(int64(someTime), 0))
	for name, tc := range map[string]struct {
		body    string
		headers []string
		code    int
		want    string
	}{
		"content type": {good, []string{"Content-Type", "text/plain"}, 415, `content type "text/plain" is not supported, only application/x-protobuf and application/json`},
		"none":         {good, nil, 415, "only application/x-protobuf"},
		"encoding":     {good, []string{"Content-Type", otlp.JSON, "Content-Encoding", "br"}, 415, "only gzip and zstd"},
		"proto":        {"\n", []string{"Content-Type", otlp.Protobuf}, 400, "malformed OTLP message: unexpected EOF"},
		"json":         {"[", []string{"Content-Type", otlp.JSON}, 400, "malformed OTLP message: invalid JSON"},
		"zstd":         {good, []string{"Content-Type", otlp.JSON, "Content-Encoding", "zstd"}, 400, "invalid request body: zstd: "},
		"cut":          {zstandard(t, good)[:20], []string{"Content-Type", otlp.JSON, "Content-Encoding", "zstd"}, 400, "invalid request body: zstd: "},
		"bomb":         {zstandard(t, strings.Repeat(" ", 100<<20)), []string{"Content-Type", otlp.JSON, "Content-Encoding", "zstd"}, 413, "max-decoded-bytes"},
		"too dense":    {`{"resourceMetrics":[` + strings.Repeat("{},", 10<<20) + `{}]}`, []string{"Content-Type", otlp.JSON, "Content-Encoding", "gzip"}, 413, "max-inflight-bytes"},
		"tenant":       {good, []string{"Content-Type", otlp.JSON, "X-Scope-OrgID", "a/b"}, 400, "invalid tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			l := calm(t)
			if len(tc.headers) > 3 && tc.headers[3] == "gzip" {
				tc.body = gzipped(t, tc.body)
			}
			w := l.otlp(tc.body, tc.headers...)
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Contains(t, w.Body.String(), tc.want)
			if len(tc.headers) > 0 && tc.headers[1] == otlp.JSON {
				var status struct{ Code int }
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &status), w.Body)
				require.NotZero(t, status.Code)
			}
			require.Empty(t, l.keys(anonymous))
		})
	}
}

// TestOTLPNotDurable: senders repeat a request only after 429, 502, 503 and 504.
func TestOTLPNotDurable(t *testing.T) {
	require.Equal(t, 503, otlpStatus(notDurable(errors.New("no bucket"))))
	require.Equal(t, 503, otlpStatus(errors.New("anything")))
	require.Equal(t, 429, otlpStatus(errTenants{1}))
}
