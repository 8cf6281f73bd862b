package ingestapp_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// payload is a request with a series that has the label team="own".
type payload struct {
	query, contentType string
	body               []byte
}

// payloads are requests to each route that takes samples, by the name of the route.
func payloads(t *testing.T) map[string][]payload {
	t.Helper()
	now := time.Now()
	ms, s := now.UnixMilli(), now.Unix()
	v1, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "x"}, {Name: "team", Value: "own"}}, Samples: []prompb.Sample{{Timestamp: ms, Value: 1}},
	}}}).Marshal()
	require.NoError(t, err)
	v2, err := (&writev2.Request{Symbols: []string{"", "__name__", "x", "team", "own"}, Timeseries: []writev2.TimeSeries{{
		LabelsRefs: []uint32{1, 2, 3, 4}, Samples: []writev2.Sample{{Timestamp: ms, Value: 1}},
	}}}).Marshal()
	require.NoError(t, err)
	remoteWrite := []payload{
		{"", "application/x-protobuf", snappy.Encode(nil, v1)},
		{"", "application/x-protobuf;proto=io.prometheus.write.v2.Request", snappy.Encode(nil, v2)},
	}
	text := func(query, body string) []payload { return []payload{{query, "text/plain", []byte(body)}} }
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "s")
	gauge := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	gauge.SetName("x")
	point := gauge.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(now))
	point.SetDoubleValue(1)
	point.Attributes().PutStr("team", "own")
	packed, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	require.NoError(t, err)
	asJSON, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
	require.NoError(t, err)
	otlp := []payload{{"", "application/x-protobuf", packed}, {"", "application/json", asJSON}}
	lines := text("", "x,team=own value=1\n")
	datadogV2 := []payload{
		{"", "application/json", fmt.Appendf(nil, `{"series":[{"metric":"x","points":[{"timestamp":%d,"value":1}],"tags":["team:own"]}]}`, s)},
		{"", "application/x-protobuf", message(1, message(2, []byte("x")), message(3, []byte("team:own")),
			message(4, fixed(1, 1), number(2, uint64(s))))},
	}
	sketches := []payload{{"", "application/x-protobuf", message(1, message(1, []byte("x")), message(4, []byte("team:own")),
		message(7, number(1, uint64(s)), fixed(6, 1), message(7, []byte{2}), message(8, []byte{1})))}}
	out := map[string][]payload{
		"/datadog/api/v1/series":     {{"", "application/json", fmt.Appendf(nil, `{"series":[{"metric":"x","points":[[%d,1]],"tags":["team:own"]}]}`, s)}},
		"/datadog/api/v2/series":     datadogV2,
		"/api/v2/series":             datadogV2,
		"/datadog/api/beta/sketches": sketches,
	}
	for names, these := range map[string][]payload{
		"/api/v1/write /api/v1/push": remoteWrite,
		"/api/v1/import/prometheus":  text("", "x{team=\"own\"} 1\n"),
		"/api/v1/import/csv":         text("format="+url.QueryEscape("1:metric:x,2:label:team"), "1,own\n"),
		"/api/v1/import":             text("", fmt.Sprintf(`{"metric":{"__name__":"x","team":"own"},"values":[1],"timestamps":[%d]}`, ms)),
		"/api/v1/otlp/v1/metrics":    otlp,
	} {
		for name := range strings.FieldsSeq(names) {
			out[name], out["/prometheus"+name] = these, these
		}
	}
	for names, these := range map[string][]payload{
		"/write /influx/write /api/v2/write /influx/api/v2/write /api/v3/write_lp /influx/api/v3/write_lp": lines,
		"/otlp/v1/metrics /opentelemetry/v1/metrics /v1/metrics":                                           otlp,
		"/api/put /opentsdb/api/put":                                 text("", fmt.Sprintf(`{"metric":"x","timestamp":%d,"value":1,"tags":{"team":"own"}}`, s)),
		"/metrics/{group} /api/v1/import/prometheus/metrics/{group}": text("", "x{team=\"own\"} 1\n"),
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = these
		}
	}
	return out
}

// message is a field with a message, text or packed numbers.
func message(num protowire.Number, fields ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(fields, nil))
}

func number(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func fixed(num protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), math.Float64bits(v))
}

// writes reports whether a route takes samples. The others that need the access of writers answer
// what senders ask before they write, or end series.
func writes(r process.Route) bool {
	method, path, _ := strings.Cut(r.Pattern, " ")
	switch {
	case r.Access != auth.Write, method == http.MethodGet, method == http.MethodDelete:
		return false
	case strings.HasSuffix(path, "/query"), strings.HasSuffix(path, "/check_run"), strings.HasSuffix(path, "/metadata"), strings.HasSuffix(path, "/intake/"):
		return false
	}
	return true
}

// TestExtraLabels: every route that takes samples takes extra_label, in every mode. Known series do
// not get the labels of another request.
func TestExtraLabels(t *testing.T) {
	for _, mode := range []ingest.Mode{ingest.Grouped, ingest.Direct, ingest.Buffered} {
		t.Run(string(mode), func(t *testing.T) {
			queue, store := memqueue.New(memqueue.Settings{}), memstore.New(memstore.Settings{})
			s := ingest.DefaultSettings()
			s.Mode, s.FlushInterval = mode, 1
			if mode == ingest.Buffered {
				s.QueueURL = sqstest.Start(t).Add("write", queue)
			}
			stage, _ := build(t, s, store)
			all := payloads(t)
			names := map[string]string{} // of what was sent, by tenant
			for _, r := range stage.Routes() {
				if !writes(r) {
					continue
				}
				method, path, ok := strings.Cut(r.Pattern, " ")
				if !ok {
					method, path = http.MethodPost, r.Pattern
				}
				require.NotEmpty(t, all[r.Name], "a route without a request in this test: %s", r.Name)
				path = strings.Replace(path, "{group...}", "job/j/team/grouped", 1)
				for i, p := range all[r.Name] {
					tenant := fmt.Sprintf("t%d", len(names))
					names[tenant] = fmt.Sprintf("%s %d", r.Pattern, i)
					send := func(extra string) *httptest.ResponseRecorder {
						q := httptest.NewRequest(method, path+"?"+p.query+extra, bytes.NewReader(p.body))
						q.Header.Set("Content-Type", p.contentType)
						q.Header.Set("X-Scope-OrgID", tenant)
						w := httptest.NewRecorder()
						mux := http.NewServeMux()
						mux.Handle(r.Pattern, r.Handler)
						mux.ServeHTTP(w, q)
						return w
					}
					for _, extra := range []string{"", "&extra_label=team%3Da&extra_label=zone%3D1", "&extra_label=team=b=c", "", "&extra_label=team%3D"} {
						w := send(extra)
						require.Equal(t, 2, w.Code/100, "%s %q: %d %s", names[tenant], extra, w.Code, w.Body)
					}
					for bad, want := range map[string]string{"team": "must have the form name=value", "=x": "must have the form name=value", "a%3D%FF": "not valid UTF-8"} {
						w := send("&extra_label=" + bad)
						require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", names[tenant], w.Body)
						require.Contains(t, w.Body.String(), "extra_label: ", names[tenant])
						require.Contains(t, w.Body.String(), want, names[tenant])
					}
				}
			}
			consume(t, stage, queue)
			for tenant, name := range names {
				own := "own"
				if strings.Contains(name, "group") {
					own = "grouped"
				}
				require.Equal(t, []string{" ", "a 1", "b=c ", own + " "}, sets(t, store, tenant), name)
			}
		})
	}
}

// consume takes all messages from the queue.
func consume(t *testing.T, stage process.Stage, queue *memqueue.Queue) {
	t.Helper()
	var batch []lambda.Message
	for _, m := range queue.Messages() {
		batch = append(batch, lambda.Message{ID: m.ID, Body: m.Body, Sent: m.Sent})
	}
	failed, err := stage.(process.Consumer).Consume(t.Context(), batch)
	require.NoError(t, err)
	require.Empty(t, failed)
}

// sets returns the values of team and zone of a tenant's series x, or x_value as the line protocol
// names it.
func sets(t *testing.T, store *memstore.Store, tenant string) (out []string) {
	t.Helper()
	for _, k := range store.Keys() {
		s, err := key.ParseSegment(k)
		if err != nil || s.Tenant != tenant {
			continue
		}
		r, _, err := store.Get(t.Context(), k, 0, -1)
		require.NoError(t, err)
		file, err := io.ReadAll(r)
		require.NoError(t, err)
		rows, err := segmenttest.Rows(file)
		require.NoError(t, err)
		for _, row := range rows {
			if name := row.Labels.Get(model.MetricNameLabel); name == "x" || name == "x_value" {
				out = append(out, row.Labels.Get("team")+" "+row.Labels.Get("zone"))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
