package ingest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/memstore"
)

// described is a series with metadata (1.0 sends the metadata separately).
func described(name, kind, help string) item { return describedAt(someTime, name, kind, help) }

func describedAt(t int64, name, kind, help string) item {
	it := gauge(name, at(t, 1))
	it.Meta = segment.Metadata{Metric: name, Type: kind, Help: help}
	return it
}

// metadata returns the metadata of each segment, in the order of writing.
func (l *lake) metadata() [][]segment.Metadata {
	var out [][]segment.Metadata
	for _, k := range l.keys(anonymous) {
		out = append(out, l.info(k).Metadata)
	}
	return out
}

func TestMetadataIsWrittenOnce(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		a, b := described("a", "counter", "first"), described("b", "gauge", "")
		l.ok(version, []item{b, a})
		l.tick()
		l.ok(version, []item{a, b})
		l.tick()
		changed := described("a", "counter", "second")
		l.ok(version, []item{b, changed})
		require.Equal(t, [][]segment.Metadata{{a.Meta, b.Meta}, nil, {changed.Meta}}, l.metadata())
	})
}

// TestMetadataAfterFailure writes metadata again whose first flush failed.
func TestMetadataAfterFailure(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			l := calm(t)
			a := described("a", "counter", "first")
			l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Err: errors.New("no route"), When: when})
			require.Equal(t, http.StatusInternalServerError, l.send(version, []item{a}).Code)
			l.ok(version, []item{a})
			l.ok(version, []item{a})
			m := l.metadata()
			require.Equal(t, [][]segment.Metadata{{a.Meta}, nil}, m[len(m)-2:])
		}
	})
}

func TestMetadataAlone(t *testing.T) {
	l := calm(t)
	meta := segment.Metadata{Metric: "a", Type: "summary", Help: "h", Unit: "u"}
	l.ok(protocolV1, []item{{Meta: meta}})
	require.Equal(t, [][]segment.Metadata{{meta}}, l.metadata())
	require.Equal(t, []string{"20231114T2200Z"}, l.windows(anonymous))
	require.Empty(t, l.rows(l.keys(anonymous)[0]))
	l.ok(protocolV1, []item{{Meta: meta}})
	require.Len(t, l.keys(anonymous), 1, "known metadata alone is an empty request")
}

// TestMetadataOfOneRequest keeps the last description of a family.
func TestMetadataOfOneRequest(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		l.ok(version, []item{described("b", "gauge", "1"), described("a", "gauge", "2"), described("b", "counter", "3")})
		require.Equal(t, [][]segment.Metadata{{{Metric: "a", Type: "gauge", Help: "2"}, {Metric: "b", Type: "counter", Help: "3"}}}, l.metadata())
	})
}

func TestMetadataTypes(t *testing.T) {
	kinds := []string{"counter", "gauge", "histogram", "gaugehistogram", "summary", "info", "stateset", "unknown"}
	inBoth(t, func(t *testing.T, version protocol) {
		for _, kind := range kinds {
			l := calm(t)
			l.ok(version, []item{described("m", kind, "help")})
			require.Equal(t, kind, l.metadata()[0][0].Type)
		}
	})
	l := calm(t)
	require.Equal(t, http.StatusNoContent, l.post(packed(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{MetricFamilyName: "m", Type: 99}}})).Code)
	require.Equal(t, "unknown", l.metadata()[0][0].Type)
	w := l.post(packed(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{Help: "of nothing"}}}))
	require.Equal(t, http.StatusNoContent, w.Code, w.Body)
	require.Len(t, l.refused(anonymous), 1)
	require.Contains(t, l.refused(anonymous)[0].Error, `the metric family "": the name must be valid UTF-8 of 1 to 4096 bytes (invalid_metadata)`)
}

// TestLongMetadata: texts beyond the limit, or not of UTF-8, are stored as far as possible, with
// type and unit, and samples are never refused for them.
func TestLongMetadata(t *testing.T) {
	help := long(4095) + "ü and more"
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		it := described("m", "counter", help)
		it.Meta.Unit = "s\xff"
		l.ok(version, []item{it})
		l.tick()
		l.ok(version, []item{it})
		require.Equal(t, [][]segment.Metadata{{{Metric: "m", Type: "counter", Help: long(4095), Unit: "s\ufffd"}}, nil}, l.metadata())
		require.Equal(t, want(t, version, []item{it}), l.read(anonymous))
	})
	text := "# HELP up " + help + "\n# TYPE up gauge\nup 1\n"
	md := upMetrics(someTime, 0)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetDescription(help)
	message, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	for name, send := range map[string]func(*lake) *httptest.ResponseRecorder{
		"text":        func(l *lake) *httptest.ResponseRecorder { return l.text("/api/v1/import/prometheus", text) },
		"Pushgateway": func(l *lake) *httptest.ResponseRecorder { return l.pushed(http.MethodPut, "job/j", text) },
		"OTLP": func(l *lake) *httptest.ResponseRecorder {
			return l.otlp(string(message), "Content-Type", "application/x-protobuf")
		},
	} {
		l := calm(t)
		w := send(l)
		require.Less(t, w.Code, 300, "%s: %s", name, w.Body)
		require.Contains(t, l.metadata()[0], segment.Metadata{Metric: "up", Type: "gauge", Help: long(4095)}, name)
		require.NotContains(t, w.Body.String(), "help", name)
	}
}

// TestFamilyNames finds the family of a series of a classic histogram or summary, which 2.0 does
// not transmit.
func TestFamilyNames(t *testing.T) {
	for _, tc := range []struct{ metric, kind, want string }{
		{"rpc_bucket", "histogram", "rpc"}, {"rpc_count", "histogram", "rpc"}, {"rpc_sum", "histogram", "rpc"}, {"rpc", "histogram", "rpc"},
		{"rpc_bucket", "gaugehistogram", "rpc"}, {"rpc_bucket", "summary", "rpc_bucket"}, {"rpc_sum", "summary", "rpc"}, {"rpc", "summary", "rpc"},
		{"rpc_count", "counter", "rpc_count"}, {"rpc_sum", "unknown", "rpc_sum"}, {"_count", "summary", "_count"}, {"a_sum_count", "summary", "a_sum"},
	} {
		l := calm(t)
		l.ok(protocolV2, []item{described(tc.metric, tc.kind, "help")})
		require.Equal(t, tc.want, l.metadata()[0][0].Metric, "%s of a %s", tc.metric, tc.kind)
	}
	l := calm(t)
	l.ok(protocolV2, []item{gauge("plain", at(someTime, 1)), described("unknown_without_text", "unknown", "")})
	require.Equal(t, [][]segment.Metadata{nil}, l.metadata(), "nothing said is no metadata")
}
