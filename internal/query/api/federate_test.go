package api_test

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
)

// federationTime is the time of the requests in this file, in ms.
const federationTime = 6_060_000

func minutesAgo(m int64) int64 { return federationTime - m*60_000 }

// federationPoints returns samples of every kind that /federate distinguishes.
func federationPoints() []point {
	ls := labels.FromStrings
	gauge := tsdbutil.GenerateTestGaugeHistogram(3)
	custom := tsdbutil.GenerateTestCustomBucketsHistogram(1)
	staleHistogram := &histogram.Histogram{Sum: math.Float64frombits(value.StaleNaN)}
	return []point{
		{labels: ls("__name__", "a", "job", "x", "instance", "i"), t: minutesAgo(2), v: 1},
		{labels: ls("__name__", "a", "job", "x", "instance", "i"), t: minutesAgo(1), v: 2},
		{labels: ls("__name__", "a", "zone", "z"), t: minutesAgo(0), v: math.Inf(1)},
		{labels: ls("__name__", "edge"), t: minutesAgo(5), v: 4},
		{labels: ls("__name__", "old"), t: minutesAgo(5) - 1, v: 5},
		{labels: ls("__name__", "stale", "instance", "i"), t: minutesAgo(2), v: 6},
		{labels: ls("__name__", "stale", "instance", "i"), t: minutesAgo(1), v: math.Float64frombits(value.StaleNaN)},
		{labels: ls("__name__", "not_a_number"), t: minutesAgo(1), v: math.NaN()},
		{labels: ls("job", "nameless"), t: minutesAgo(1), v: 7},
		{labels: ls("__name__", "quoted", "path", `C:\"x"`+"\n"), t: minutesAgo(1), v: 8},
		{labels: ls("__name__", "future"), t: federationTime + 1, v: 9},
		{labels: ls("__name__", "mixed", "kind", "float"), t: minutesAgo(1), v: 10},
		{labels: ls("__name__", "mixed", "kind", "float2"), t: minutesAgo(1), v: 11},
		{labels: ls("__name__", "mixed", "kind", "fhist"), t: minutesAgo(1), h: tsdbutil.GenerateTestHistogram(1)},
		{labels: ls("__name__", "native"), t: minutesAgo(2), h: tsdbutil.GenerateTestHistogram(1)},
		{labels: ls("__name__", "native"), t: minutesAgo(1), h: tsdbutil.GenerateTestHistogram(2)},
		{labels: ls("__name__", "native_gauge"), t: minutesAgo(0), h: gauge},
		{labels: ls("__name__", "native_stale"), t: minutesAgo(2), h: tsdbutil.GenerateTestHistogram(1)},
		{labels: ls("__name__", "native_stale"), t: minutesAgo(1), h: staleHistogram},
		{labels: ls("__name__", "custom", "job", "x"), t: minutesAgo(1), h: custom},
	}
}

func newFederation(t *testing.T, more ...point) http.Handler {
	t.Helper()
	backend := newEmptyBackend(t)
	backend.append(t, append(federationPoints(), more...)...)
	h, err := api.New(testSettings(), backend, nil, func() time.Time { return time.UnixMilli(federationTime) }, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	return h
}

func federate(t *testing.T, h http.Handler, accept string, selectors ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/federate?"+url.Values{"match[]": selectors}.Encode(), nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// customText is GenerateTestCustomBucketsHistogram(1), whose buckets at the bounds 0, 1, 3 and 4
// hold 2, 3, 2 and 2.
const customText = `# TYPE custom histogram
custom_bucket{job="x",instance="",le="0"} 2 6000000
custom_bucket{job="x",instance="",le="1"} 5 6000000
custom_bucket{job="x",instance="",le="2"} 5 6000000
custom_bucket{job="x",instance="",le="3"} 7 6000000
custom_bucket{job="x",instance="",le="4"} 9 6000000
custom_bucket{job="x",instance="",le="+Inf"} 9 6000000
custom_sum{job="x",instance=""} 36.8 6000000
custom_count{job="x",instance=""} 9 6000000
`

const everything = `{__name__=~".*"}`

func TestFederateText(t *testing.T) {
	h := newFederation(t)
	const (
		seriesA = "# TYPE a untyped\n" + `a{instance="i",job="x"} 2 6000000` + "\n" + `a{zone="z",instance=""} +Inf 6060000` + "\n"
		edge    = "# TYPE edge untyped\n" + `edge{instance=""} 4 5760000` + "\n"
	)
	for _, tc := range []struct {
		name      string
		selectors []string
		want      string
	}{
		{"latest of each series", []string{"a"}, seriesA},
		{"just within the lookback", []string{"edge"}, edge},
		{"before the lookback", []string{"old"}, ""},
		{"after now", []string{"future"}, ""},
		{"stale", []string{"stale"}, ""},
		{"stale histogram", []string{"native_stale"}, ""},
		{"NaN is a value", []string{"not_a_number"}, "# TYPE not_a_number untyped\n" + `not_a_number{instance=""} NaN 6000000` + "\n"},
		{"nameless", []string{`{job="nameless"}`}, ""},
		{"nothing", []string{"nothing"}, ""},
		{"no selector at all", nil, ""},
		{"no matcher", []string{"{}", "edge"}, edge},
		{"escapes", []string{"quoted"}, "# TYPE quoted untyped\n" + `quoted{path="C:\\\"x\"\n",instance=""} 8 6000000` + "\n"},
		{"several selectors", []string{"edge", "a"}, seriesA + edge},
		{"overlapping selectors", []string{"a", `{job="x",__name__!="custom"}`, "a"}, seriesA},
		{"native histograms are left out", []string{"native"}, ""},
		{"of mixed names the floats remain", []string{"mixed"}, "# TYPE mixed untyped\n" + `mixed{kind="float",instance=""} 10 6000000` + "\n" + `mixed{kind="float2",instance=""} 11 6000000` + "\n"},
		{"custom buckets become classic", []string{"custom"}, customText},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := federate(t, h, "", tc.selectors...)
			require.Equal(t, http.StatusOK, rec.Code)
			require.Equal(t, tc.want, rec.Body.String())
		})
	}
}

func TestFederateBadRequests(t *testing.T) {
	h := newFederation(t)
	for target, want := range map[string]string{
		"/federate?match[]=-a":             "1:1: parse error: unexpected <op:->\n",
		"/federate?match[]=a&match[]=b-c":  "1:2: parse error: unexpected <op:->\n",
		"/federate?match[]=a&x=%zz":        "error parsing form values: invalid URL escape \"%zz\"\n",
		"/prometheus/federate?match[]=a{x": "1:4: parse error: unexpected end of input inside braces\n",
	} {
		rec := get(t, h, target)
		require.Equal(t, http.StatusBadRequest, rec.Code, target)
		require.Equal(t, want, rec.Body.String(), target)
		require.Equal(t, "text/plain; charset=utf-8", rec.Header().Get("Content-Type"), target)
	}
}

// acceptProtobuf is the Accept header of a federating Prometheus server.
const acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"

func TestFederateFormats(t *testing.T) {
	h := newFederation(t)
	for accept, want := range map[string]string{
		"":             "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		"text/plain":   "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
		acceptProtobuf: "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores",
		"text/plain;version=1.0.0;escaping=allow-utf-8": "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8",
	} {
		require.Equal(t, want, federate(t, h, accept, "a").Header().Get("Content-Type"), accept)
	}
}

func TestFederateProtobuf(t *testing.T) {
	rec := federate(t, newFederation(t), acceptProtobuf, everything)
	require.Equal(t, http.StatusOK, rec.Code)
	var got []string
	histograms := map[string]*dto.Histogram{}
	dec := expfmt.NewDecoder(rec.Body, expfmt.Format(rec.Header().Get("Content-Type")))
	for {
		var family dto.MetricFamily
		err := dec.Decode(&family)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, m := range family.GetMetric() {
			got = append(got, family.GetName()+" "+family.GetType().String()+" "+model.Time(m.GetTimestampMs()).String())
			histograms[family.GetName()] = m.GetHistogram()
		}
	}
	require.Equal(t, []string{
		"a UNTYPED 6000", "a UNTYPED 6060",
		"custom HISTOGRAM 6000",
		"edge UNTYPED 5760",
		"mixed UNTYPED 6000", "mixed UNTYPED 6000", "mixed HISTOGRAM 6000",
		"native HISTOGRAM 6000",
		"native_gauge GAUGE_HISTOGRAM 6060",
		"not_a_number UNTYPED 6000",
		"quoted UNTYPED 6000",
	}, got)

	want := tsdbutil.GenerateTestHistogram(2).ToFloat(nil)
	native := histograms["native"]
	require.Equal(t, want.Count, native.GetSampleCountFloat())
	require.Equal(t, want.Sum, native.GetSampleSum())
	require.Equal(t, want.Schema, native.GetSchema())
	require.Equal(t, want.ZeroThreshold, native.GetZeroThreshold())
	require.Equal(t, want.ZeroCount, native.GetZeroCountFloat())
	require.Equal(t, want.PositiveBuckets, native.GetPositiveCount())
	require.Equal(t, want.NegativeBuckets, native.GetNegativeCount())
	require.Len(t, native.GetPositiveSpan(), len(want.PositiveSpans))
	for i, span := range want.PositiveSpans {
		require.Equal(t, span.Offset, native.GetPositiveSpan()[i].GetOffset())
		require.Equal(t, span.Length, native.GetPositiveSpan()[i].GetLength())
	}
	require.Len(t, native.GetNegativeSpan(), len(want.NegativeSpans))
	require.Empty(t, native.GetBucket())
	require.Len(t, histograms["custom"].GetBucket(), len(tsdbutil.GenerateTestCustomBucketsHistogram(1).CustomValues))
}

func TestFederateIsCompressed(t *testing.T) {
	long := point{labels: labels.FromStrings("__name__", "long", "text", strings.Repeat("x", 2_000)), t: minutesAgo(1), v: 1}
	req := httptest.NewRequest(http.MethodGet, "/federate?match[]=long", nil)
	req.Header.Set("Accept-Encoding", "gzip")
	rec := httptest.NewRecorder()
	newFederation(t, long).ServeHTTP(rec, req)
	require.Equal(t, "gzip", rec.Header().Get("Content-Encoding"))
	require.Equal(t, []byte{0x1f, 0x8b}, rec.Body.Bytes()[:2])
}
