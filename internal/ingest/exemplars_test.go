package ingest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/memstore"
)

const (
	openMetrics    = "application/openmetrics-text; version=1.0.0"
	protoDelimited = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// TestInvalidExemplars: an exemplar that breaks a rule is refused alone, counted, and in the audit;
// the samples beside it are stored, and the sender is told of success, as Prometheus does.
func TestInvalidExemplars(t *testing.T) {
	limit := someTime + (10 * time.Minute).Milliseconds()
	for name, tc := range map[string]struct {
		exemplar exemplar.Exemplar
		reason   string
	}{
		"in the future":    {exemplar.Exemplar{Ts: limit + 1}, "exemplar: timestamp"},
		"with a bad label": {exemplar.Exemplar{Ts: someTime, Labels: labels.FromStrings("a", "\xff")}, `exemplar: value of label "a"`},
		"with many labels": {exemplar.Exemplar{Ts: someTime, Labels: labels.FromStrings(many(102)[2:]...)}, "exemplar: more label names than the limit of 100"},
	} {
		t.Run(name, func(t *testing.T) {
			inAll(t, func(t *testing.T, mode Mode, version protocol) {
				l := calmIn(t, mode)
				alone, beside := gauge("alone"), gauge("beside", at(someTime, 1))
				alone.Exemplars, beside.Exemplars = []exemplar.Exemplar{tc.exemplar}, []exemplar.Exemplar{tc.exemplar}
				for range 2 { // the second time, the series are known
					l.ok(version, []item{alone, beside})
				}
				require.Equal(t, want(t, version, []item{gauge("beside", at(someTime, 1))}), l.read(anonymous))
				requireExemplarsRefused(t, l, 4, tc.reason)
			})
		})
	}
	for name, refs := range map[string][]uint32{"odd references": {4}, "references beyond the symbols": {4, 9}} {
		t.Run(name, func(t *testing.T) {
			l := calm(t)
			w := l.post(packed(t, &writev2.Request{
				Symbols:    []string{"", "__name__", "good", "m", "trace_id", "x"},
				Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Timestamp: someTime, Value: 1}}, Exemplars: []writev2.Exemplar{{LabelsRefs: refs, Timestamp: someTime}}}},
			}), "Content-Type", contentV2)
			require.Equal(t, http.StatusNoContent, w.Code, w.Body)
			require.Contains(t, l.read(anonymous), `{__name__="good"}`)
			requireExemplarsRefused(t, l, 1, "label references")
		})
	}
	t.Run("OpenMetrics", func(t *testing.T) {
		l := calm(t)
		w := l.text("/", fmt.Sprintf("# TYPE a counter\na_total 1 # {trace_id=\"x\"} 1 %d\n# EOF\n", limit/1000+1), "Content-Type", openMetrics)
		require.Equal(t, http.StatusNoContent, w.Code, w.Body)
		require.Equal(t, []string{`{__name__="a_total"} 1@0`}, l.series())
		requireExemplarsRefused(t, l, 1, "exemplar: timestamp")
	})
	t.Run("Pushgateway", func(t *testing.T) {
		l := calm(t)
		w := l.pushed(http.MethodPut, "job/j", counterWith(t, &dto.Exemplar{Value: new(1.0), Timestamp: timestamppb.New(time.UnixMilli(limit + 1))}), "Content-Type", protoDelimited)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Equal(t, []string{`{__name__="a_total", job="j"} 1@0`}, l.series())
		requireExemplarsRefused(t, l, 1, "exemplar: timestamp")
	})
	t.Run("OTLP", func(t *testing.T) {
		l := calm(t)
		md := upMetrics(someTime, 0)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Exemplars().AppendEmpty()
		w := l.otlp(protoOf(t, md), "Content-Type", "application/x-protobuf")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Empty(t, w.Body.Bytes(), "no warning")
		require.Contains(t, l.read(anonymous), `{__name__="up", job="test"}`)
		requireExemplarsRefused(t, l, 1, "exemplar: without a value")
	})
}

// counterWith is a push of a counter with an exemplar.
func counterWith(t *testing.T, e *dto.Exemplar) string {
	t.Helper()
	var out strings.Builder
	_, err := protodelim.MarshalTo(&out, &dto.MetricFamily{
		Name: new("a_total"), Type: dto.MetricType_COUNTER.Enum(),
		Metric: []*dto.Metric{{Counter: &dto.Counter{Value: new(1.0), Exemplar: e}}},
	})
	require.NoError(t, err)
	return out.String()
}

func requireExemplarsRefused(t *testing.T, l *lake, n int, reason string) {
	t.Helper()
	require.InDelta(t, n, l.discarded(remotewrite.ReasonExemplar), 0)
	require.Len(t, l.refused(anonymous), n)
	require.Contains(t, l.refused(anonymous)[0].Error, reason)
}

// TestExemplarsInManyWindows: the times of exemplars do not make a request one of too many windows.
func TestExemplarsInManyWindows(t *testing.T) {
	set := quick()
	set.MaxWindows = 2
	l := calmWith(t, Grouped, set)
	it := gauge("m", at(someTime, 1))
	for i := range 3 {
		it.Exemplars = append(it.Exemplars, exemplar.Exemplar{Ts: someTime - int64(i)*key.WindowMillis, HasTs: true, Labels: labels.FromStrings("trace_id", fmt.Sprint(i))})
	}
	l.ok(protocolV2, []item{it})
	require.Len(t, l.read(anonymous)[`{__name__="m", job="test"}`].Exemplars, 1)
	requireExemplarsRefused(t, l, 2, "lie in 3 windows")
}

// TestRepeatedExemplars: an exemplar without a time of its own that a sender repeats is stored once
// for as long as its series has no other one, as Prometheus stores those of scrapes. A request that
// failed, which is sent again, stores it.
func TestRepeatedExemplars(t *testing.T) {
	for name, send := range map[string]func(l *lake, trace string) *httptest.ResponseRecorder{
		"text": func(l *lake, trace string) *httptest.ResponseRecorder {
			return l.text("/?extra_label=job%3Dtest", fmt.Sprintf("# TYPE a counter\na_total 1 # {trace_id=%q} 0.5\n# EOF\n", trace), "Content-Type", openMetrics)
		},
		"Pushgateway": func(l *lake, trace string) *httptest.ResponseRecorder {
			e := &dto.Exemplar{Label: []*dto.LabelPair{{Name: new("trace_id"), Value: &trace}}, Value: new(0.5)}
			return l.pushed(http.MethodPost, "job/test", counterWith(t, e), "Content-Type", protoDelimited)
		},
	} {
		for _, mode := range modes {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				l := calmIn(t, mode)
				if mode != Buffered {
					l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Err: errDown})
					require.Equal(t, http.StatusInternalServerError, send(l, "x").Code)
				}
				for _, trace := range []string{"x", "x", "y", "y", "x"} {
					l.second()
					w := send(l, trace)
					require.Less(t, w.Code, 300, w.Body)
				}
				require.Equal(t, []string{
					exemplarText(exemplar.Exemplar{Ts: someTime + 1000, Value: 0.5, Labels: labels.FromStrings("trace_id", "x")}),
					exemplarText(exemplar.Exemplar{Ts: someTime + 3000, Value: 0.5, Labels: labels.FromStrings("trace_id", "y")}),
					exemplarText(exemplar.Exemplar{Ts: someTime + 5000, Value: 0.5, Labels: labels.FromStrings("trace_id", "x")}),
				}, l.read(anonymous)[`{__name__="a_total", job="test"}`].Exemplars)
			})
		}
	}
}
