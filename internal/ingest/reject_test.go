package ingest

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// offender is an item that violates a rule, with the error text of the answer.
type offender struct {
	name    string
	item    item
	reason  remotewrite.Reason
	message string
	kept    item // what of it is stored all the same
	samples int  // samples that count as discarded
}

func offenders() []offender {
	one := []segment.Float{at(someTime, 1)}
	lset := func(l ...string) item { return item{Lset: l, Floats: one} }
	limit := someTime + (10 * time.Minute).Milliseconds()
	badHist := &histogram.Histogram{Schema: 0, Count: 5, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []int64{1}}
	return []offender{
		{"no labels", item{Floats: one, Lset: []string{}}, remotewrite.ReasonMissingName, "series {} has no metric name", item{}, 1},
		{"no metric name", lset("job", "x"), remotewrite.ReasonMissingName, `series {job="x"} has no metric name (label __name__)`, item{}, 1},
		{"empty metric name", lset("__name__", "", "job", "x"), remotewrite.ReasonMissingName, `series {__name__="", job="x"} has no metric name`, item{}, 1},
		{"metric name that is not UTF-8", lset("__name__", "a\xff"), remotewrite.ReasonInvalidValue, "value of label \"__name__\" is not valid UTF-8", item{}, 1},
		{"empty label name", lset("", "x", "__name__", "m"), remotewrite.ReasonInvalidLabel, `invalid label name ""`, item{}, 1},
		{"label name that is not UTF-8", lset("__name__", "m", "a\xff", "x"), remotewrite.ReasonInvalidLabel, `invalid label name "a\xff"`, item{}, 1},
		{"label value that is not UTF-8", lset("__name__", "m", "a", "\xff"), remotewrite.ReasonInvalidValue, `value of label "a" is not valid UTF-8`, item{}, 1},
		{"duplicate that is not adjacent", lset("a", "1", "__name__", "m", "a", "2"), remotewrite.ReasonDuplicate, `duplicate label name "a" in series {__name__="m", a="1", a="2"}`, item{}, 1},
		{"duplicate", lset("__name__", "m", "a", "1", "a", "2"), remotewrite.ReasonDuplicate, `duplicate label name "a" in series`, item{}, 1},
		{"duplicate with equal values", lset("__name__", "m", "a", "1", "a", "1"), remotewrite.ReasonDuplicate, `duplicate label name "a"`, item{}, 1},
		{"too many labels", lset(many(101)...), remotewrite.ReasonTooManyLabels, "more label names than the limit of 100", item{}, 1},
		{"far too many labels", lset(many(5000)...), remotewrite.ReasonTooManyLabels, "more label names than the limit of 100", item{}, 1},
		{"long name", lset("__name__", "m", long(1025), "v"), remotewrite.ReasonNameTooLong, "(1025 bytes) is longer than the limit of 1024 bytes", item{}, 1},
		{"long value", lset("__name__", "m", "a", long(2049)), remotewrite.ReasonValueTooLong, `value of label "a" is longer than the limit of 2048 bytes`, item{}, 1},
		{"long metric name", lset("__name__", long(2049)), remotewrite.ReasonValueTooLong, `value of label "__name__" is longer`, item{}, 1},
		{
			"future", gauge("m", at(limit, 1), at(limit+1, 2)), remotewrite.ReasonFuture, fmt.Sprintf("timestamp %d ms is too far in the future: the limit is now %d ms", limit+1, limit),
			gauge("m", at(limit, 1)), 1,
		},
		{"end of time", gauge("m", at(math.MaxInt64, 1), at(someTime, 1)), remotewrite.ReasonTimeRange, "timestamp 9223372036854775807 ms is outside the years 0 to 9999", gauge("m", one...), 1},
		{"beginning of time", gauge("m", at(math.MinInt64, 1), at(key.MinTime-1, 1), at(key.MinTime, 3)), remotewrite.ReasonTimeRange, "timestamp -9223372036854775808 ms", gauge("m", at(key.MinTime, 3)), 2},
		{
			"histogram that lies about its buckets", item{Lset: gauge("h").Lset, Floats: one, Hists: []segment.Hist{{T: someTime, H: badHist}}}, remotewrite.ReasonHistogram, "histogram at 1700000000000 ms: ",
			gauge("h", one...), 1,
		},
		{
			"histogram of an unknown schema", item{Lset: gauge("h").Lset, Floats: one, Hists: []segment.Hist{{T: someTime, FH: &histogram.FloatHistogram{Schema: 77}}}}, remotewrite.ReasonHistogram, "schema",
			gauge("h", one...), 1,
		},
		{
			"histogram in the future", item{Lset: gauge("h").Lset, Floats: one, Hists: []segment.Hist{{T: limit + 1, H: &histogram.Histogram{}}}}, remotewrite.ReasonFuture, "too far in the future",
			gauge("h", one...), 1,
		},
	}
}

// TestRejections sends an invalid series between valid ones, alone and with a second invalid one:
// the answer names the first, and the rest is stored.
func TestRejections(t *testing.T) {
	before, after := gauge("before", at(someTime, 1), at(someTime+1, 2)), gauge("zz_after", at(someTime, 3))
	for _, o := range offenders() {
		t.Run(o.name, func(t *testing.T) {
			inAll(t, func(t *testing.T, mode Mode, version protocol) {
				l := calmIn(t, mode)
				valid := []item{before, after}
				if o.kept.Lset != nil {
					valid = append(valid, o.kept)
				}
				w := l.send(version, []item{before, o.item, after})
				requireRejected(t, o, w.Code, w.Body.String())
				require.Equal(t, want(t, version, valid), l.read(anonymous))
				if version == protocolV2 {
					require.Equal(t, []string{fmt.Sprint(3 + len(o.kept.Floats)), "0", "0"}, writtenHeaders(w.Header()))
				}
				require.Equal(t, float64(o.samples), l.discarded(o.reason))
				// Again, when the valid series are known, with a second offence.
				w = l.send(version, []item{o.item, before, {Lset: []string{"nameless", "1"}, Floats: []segment.Float{at(someTime, 1)}}, after})
				requireRejected(t, o, w.Code, w.Body.String())
				require.Contains(t, w.Body.String(), "more offences; what is valid was stored")
				require.Equal(t, want(t, version, valid), l.read(anonymous))
			})
		})
	}
}

func requireRejected(t *testing.T, o offender, code int, body string) {
	t.Helper()
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, o.message)
	require.Contains(t, body, "("+string(o.reason)+")")
	require.Less(t, len(body), 2000)
}

// TestNothingValid sends offenders alone: nothing is stored.
func TestNothingValid(t *testing.T) {
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		w := l.send(version, []item{{Lset: []string{"job", "x"}, Floats: []segment.Float{at(someTime, 1), at(someTime+1, 1)}}})
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.NotContains(t, w.Body.String(), "more offences")
		require.Empty(t, l.store.Keys())
		require.InDelta(t, 2, l.discarded(remotewrite.ReasonMissingName), 0)
	})
}

// TestRejectionsOfV2 breaks rules that only 2.0 has.
func TestRejectionsOfV2(t *testing.T) {
	good := writev2.TimeSeries{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Timestamp: someTime, Value: 1}}}
	one := good.Samples
	for _, tc := range []struct {
		name    string
		series  writev2.TimeSeries
		reason  remotewrite.Reason
		message string
		samples string // written
	}{
		{"no samples", writev2.TimeSeries{LabelsRefs: []uint32{1, 3}}, remotewrite.ReasonNoSamples, "a series must have at least one sample, histogram or exemplar", "1"},
		{"odd references", writev2.TimeSeries{LabelsRefs: []uint32{1, 3, 4}, Samples: one}, remotewrite.ReasonSymbolRef, "label references [1 3 4]: odd in number or beyond the 6 symbols", "1"},
		{"reference beyond the symbols", writev2.TimeSeries{LabelsRefs: []uint32{1, 6}, Samples: one}, remotewrite.ReasonSymbolRef, "beyond the 6 symbols", "1"},
		{"reference far beyond the symbols", writev2.TimeSeries{LabelsRefs: []uint32{1, math.MaxUint32}, Samples: one}, remotewrite.ReasonSymbolRef, "beyond the 6 symbols", "1"},
		{"metadata reference beyond the symbols", writev2.TimeSeries{LabelsRefs: []uint32{1, 3}, Samples: one, Metadata: writev2.Metadata{Type: 1, HelpRef: 9}}, remotewrite.ReasonSymbolRef, "metadata references 9, 0 of 6 symbols", "2"},
		{"start timestamp", writev2.TimeSeries{LabelsRefs: []uint32{1, 3}, Samples: []writev2.Sample{{Timestamp: someTime, StartTimestamp: math.MaxInt64}, one[0]}}, remotewrite.ReasonTimeRange, "start timestamp 9223372036854775807 ms is outside", "2"},
		{
			"start timestamp of a histogram", writev2.TimeSeries{LabelsRefs: []uint32{1, 3}, Samples: one, Histograms: []writev2.Histogram{writev2.FromIntHistogram(math.MinInt64, someTime, &histogram.Histogram{})}},
			remotewrite.ReasonTimeRange, "start timestamp", "2",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := calm(t)
			req := &writev2.Request{Symbols: []string{"", "__name__", "good", "m", "trace_id", "x"}, Timeseries: []writev2.TimeSeries{good, tc.series}}
			w := l.post(packed(t, req), "Content-Type", contentV2)
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, w.Body.String(), tc.message)
			require.Contains(t, w.Body.String(), "("+string(tc.reason)+")")
			require.Equal(t, []string{tc.samples, "0", "0"}, writtenHeaders(w.Header()))
			require.Contains(t, l.read(anonymous), `{__name__="good"}`)
		})
	}
	l := calm(t)
	w := l.post(packed(t, &writev2.Request{Symbols: []string{"x", "__name__", "good"}, Timeseries: []writev2.TimeSeries{good}}), "Content-Type", contentV2)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `the first symbol must be the empty string, is "x"`)
	require.Empty(t, l.store.Keys())
}

func TestLegacyNames(t *testing.T) {
	set := quick()
	set.Limits.NameScheme = remotewrite.LegacyNames
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmWith(t, mode, set)
		l.ok(version, []item{{Lset: []string{"__name__", "a:b", "job", "x"}, Floats: []segment.Float{at(someTime, 1)}}})
		for _, lset := range [][]string{{"__name__", "a.b"}, {"__name__", "m", "a:b", "x"}, {"__name__", "m", "ü", "x"}} {
			w := l.send(version, []item{{Lset: lset, Floats: []segment.Float{at(someTime, 1)}}})
			require.Equal(t, http.StatusBadRequest, w.Code, strings.Join(lset, " "))
			require.Contains(t, w.Body.String(), "invalid ")
		}
	})
}

// TestLabelOfManyBytes goes into an answer only in part.
func TestLabelOfManyBytes(t *testing.T) {
	l := calm(t)
	for _, lset := range [][]string{{"__name__", "m", "a", long(10 << 20)}, {"__name__", "m", long(10 << 20), "v"}, {long(10 << 20), "v", "__name__", "m"}} {
		req := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Samples: []prompb.Sample{{Timestamp: someTime}}}}}
		for i := 0; i < len(lset); i += 2 {
			req.Timeseries[0].Labels = append(req.Timeseries[0].Labels, prompb.Label{Name: lset[i], Value: lset[i+1]})
		}
		w := l.post(packed(t, req))
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Less(t, w.Body.Len(), 2000)
	}
	require.Empty(t, l.store.Keys())
}
