package otlp_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/otlp"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// decoded is a batch in words.
type decoded struct {
	samples      []string
	meta         map[string]string
	rejected     int64
	offence, err error
}

func roomOf(msg []byte) remotewrite.Room {
	const most = 1 << 30
	return remotewrite.NewRoom(len(msg), most, most, nil)
}

func rulesNow() remotewrite.Rules {
	limits := remotewrite.DefaultLimits()
	return remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100}
}

func try(t *otlp.Translator, msg []byte, g *remotewrite.Generation) decoded {
	b, result, err := t.Decode(msg, g, rulesNow(), roomOf(msg))
	if err != nil {
		return decoded{err: err}
	}
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	out := decoded{meta: map[string]string{}, rejected: result, offence: b.Err}
	for i, f := range b.Floats {
		st := int64(0)
		if b.Starts != nil {
			st = b.Starts[i]
		}
		out.samples = append(out.samples, floatText(remotewritetest.Labels(&v, f.Ref), st, f.T, f.V))
	}
	for _, h := range b.Hists {
		out.samples = append(out.samples, histogramText(remotewritetest.Labels(&v, h.Ref), h.ST, h.T, h.H))
	}
	for _, e := range b.Exemplars {
		out.samples = append(out.samples, exemplarText(remotewritetest.Labels(&v, e.Ref), e.Labels, e.Ts, e.Value))
	}
	slices.Sort(out.samples)
	for _, m := range b.Metadata {
		out.meta[m.Metric] = fmt.Sprint(metadata.Metadata{Type: model.MetricType(m.Type), Unit: m.Unit, Help: m.Help})
	}
	return out
}

func decode(t *testing.T, translator *otlp.Translator, msg []byte, g *remotewrite.Generation) decoded {
	t.Helper()
	out := try(translator, msg, g)
	require.NoError(t, out.err)
	return out
}

// metrics returns metrics of one identified resource.
func metrics(add func(pmetric.MetricSlice)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "shop")
	add(rm.ScopeMetrics().AppendEmpty().Metrics())
	return md
}

func marshal(t testing.TB, md pmetric.Metrics) []byte {
	t.Helper()
	msg, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return msg
}

func at(p anyPoint) { p.SetTimestamp(now * 1_000_000) }

// good adds a gauge that breaks no rule.
func good(ms pmetric.MetricSlice) {
	m := ms.AppendEmpty()
	m.SetName("good")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetIntValue(1)
	at(p)
}

// TestDelta: points of delta temporality become series with a label, whose samples have the points'
// start times, and counters otherwise. As Prometheus stores them, they have neither label nor type.
func TestDelta(t *testing.T) {
	msg := marshal(t, metrics(func(ms pmetric.MetricSlice) {
		m := ms.AppendEmpty()
		m.SetName("requests")
		s := m.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := s.DataPoints().AppendEmpty()
		p.SetIntValue(3)
		p.SetStartTimestamp((now - 15_000) * 1_000_000)
		at(p)
		m = ms.AppendEmpty()
		m.SetName("size")
		e := m.SetEmptyExponentialHistogram()
		e.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		h := e.DataPoints().AppendEmpty()
		h.SetCount(2)
		h.SetZeroCount(2)
		h.SetStartTimestamp((now - 15_000) * 1_000_000)
		at(h)
	}))
	for native, want := range map[bool]struct{ label, counter, histogram string }{
		false: {`__temporality__="delta", `, "counter", "histogram"},
		true:  {"", "unknown", "unknown"},
	} {
		set := settings.Default[otlp.Settings]()
		set.NativeDelta = native
		got := decode(t, otlp.NewTranslator(set), msg, remotewrite.NewGeneration(7))
		require.NoError(t, got.offence)
		require.Zero(t, got.rejected)
		require.Len(t, got.samples, 2)
		require.Contains(t, got.samples, floatText(`{__name__="requests_total", `+want.label+`job="shop"}`, now-15_000, now, 3))
		require.Contains(t, got.samples[1], `{__name__="size", `+want.label+`job="shop"}`)
		require.Contains(t, got.meta["requests_total"], want.counter)
		require.Contains(t, got.meta["size"], want.histogram)
	}
}

// TestRefused: data points that break a rule are counted, and the others are stored.
func TestRefused(t *testing.T) {
	number := func(ms pmetric.MetricSlice, name string) pmetric.NumberDataPoint {
		m := ms.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(2)
		at(p)
		return p
	}
	wide := func(m pcommon.Map) {
		for i := range 98 {
			m.PutInt(fmt.Sprint("a", i), 1)
		}
	}
	for name, tc := range map[string]struct {
		add      func(pmetric.MetricSlice)
		rejected int64
		want     string
	}{
		"delta": {func(ms pmetric.MetricSlice) {
			m := ms.AppendEmpty()
			m.SetName("requests")
			s := m.SetEmptySum()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			for range 3 {
				p := s.DataPoints().AppendEmpty()
				p.SetIntValue(1)
				at(p)
			}
		}, 3, `metric "requests": a sum that is not monotonic is refused with delta temporality`},
		"no temporality": {func(ms pmetric.MetricSlice) {
			at(ms.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty())
		}, 1, "aggregation temporality 0 is neither delta (1) nor cumulative (2) (aggregation_temporality)"},
		"no name": {func(ms pmetric.MetricSlice) { number(ms, "") }, 1, "metric_name_invalid"},
		"no time": {func(ms pmetric.MetricSlice) { number(ms, "x").SetTimestamp(0) }, 1, `metric "x": data point without time_unix_nano (invalid_data_point)`},
		"future":  {func(ms pmetric.MetricSlice) { number(ms, "x").SetTimestamp(2 * now * 1_000_000) }, 1, "too_far_in_future"},
		"no value": {func(ms pmetric.MetricSlice) {
			m := ms.AppendEmpty()
			m.SetName("x")
			at(m.SetEmptyGauge().DataPoints().AppendEmpty())
		}, 1, "without a value (invalid_data_point)"},
		"long value": {func(ms pmetric.MetricSlice) {
			number(ms, "x").Attributes().PutStr("a", strings.Repeat("x", 3000))
		}, 1, `metric "x": value of label "a" is longer`},
		"too many attributes": {func(ms pmetric.MetricSlice) {
			wide(number(ms, "fits").Attributes())
			p := number(ms, "x")
			for i := range 200 {
				p.Attributes().PutInt(fmt.Sprint("c", i), 1)
			}
		}, 1, "more attributes than the limit of 100 label names (max_label_names_per_series)"},
		"a histogram's buckets have one label more": {func(ms pmetric.MetricSlice) {
			m := ms.AppendEmpty()
			m.SetName("h")
			s := m.SetEmptyHistogram()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := s.DataPoints().AppendEmpty()
			p.ExplicitBounds().FromRaw([]float64{1, 2})
			p.BucketCounts().FromRaw([]uint64{1, 2, 3})
			e := p.Exemplars().AppendEmpty()
			e.SetIntValue(1)
			p.SetCount(6)
			p.SetSum(3)
			at(p)
			wide(p.Attributes()) // with job and __name__: 100
		}, 1, "more label names than the limit of 100"},
		"scale": {func(ms pmetric.MetricSlice) {
			s := ms.AppendEmpty().SetEmptyExponentialHistogram()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := s.DataPoints().AppendEmpty()
			p.SetScale(-5)
			at(p)
		}, 1, ""},
		"counts that contradict each other": {func(ms pmetric.MetricSlice) {
			m := ms.AppendEmpty()
			m.SetName("e")
			s := m.SetEmptyExponentialHistogram()
			s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := s.DataPoints().AppendEmpty()
			p.SetCount(5)
			at(p)
		}, 1, `metric "e": histogram at 1700000000000 ms: `},
	} {
		t.Run(name, func(t *testing.T) {
			translator, g := otlp.NewTranslator(settings.Default[otlp.Settings]()), remotewrite.NewGeneration(7)
			msg := marshal(t, metrics(func(ms pmetric.MetricSlice) {
				good(ms)
				tc.add(ms)
			}))
			for range 2 {
				got := decode(t, translator, msg, g)
				require.Equal(t, tc.rejected, got.rejected)
				require.ErrorContains(t, got.offence, tc.want)
				require.Contains(t, got.samples, floatText(`{__name__="good", job="shop"}`, 0, now, 1))
				for _, s := range got.samples {
					require.NotContains(t, s, "h_")
				}
			}
		})
	}
}

// TestUnsortedExemplars: each exemplar of a histogram belongs to the bucket of its value.
func TestUnsortedExemplars(t *testing.T) {
	msg := marshal(t, metrics(func(ms pmetric.MetricSlice) {
		m := ms.AppendEmpty()
		m.SetName("h")
		s := m.SetEmptyHistogram()
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := s.DataPoints().AppendEmpty()
		p.ExplicitBounds().FromRaw([]float64{1, 2})
		p.BucketCounts().FromRaw([]uint64{1, 1, 1})
		p.SetCount(3)
		at(p)
		for _, v := range []float64{3, 0.5, 2} {
			p.Exemplars().AppendEmpty().SetDoubleValue(v)
		}
	}))
	got := decode(t, otlp.NewTranslator(settings.Default[otlp.Settings]()), msg, remotewrite.NewGeneration(7))
	for le, v := range map[string]float64{"1": 0.5, "2": 2, "+Inf": 3} {
		require.Contains(t, got.samples, exemplarText(fmt.Sprintf(`{__name__="h_bucket", job="shop", le=%q}`, le), labels.EmptyLabels(), now, v))
	}
}

// TestMergedBuckets: buckets of a finer scale than 8 are merged as Prometheus reduces resolutions.
func TestMergedBuckets(t *testing.T) {
	for offset := int32(-40); offset < 40; offset++ {
		counts := []uint64{0, 0, 5, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0}
		msg := marshal(t, metrics(func(ms pmetric.MetricSlice) {
			for _, scale := range []int32{4, 10} {
				m := ms.AppendEmpty()
				m.SetName(fmt.Sprint("scale", scale))
				s := m.SetEmptyExponentialHistogram()
				s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				p := s.DataPoints().AppendEmpty()
				p.SetScale(scale)
				p.SetCount(16)
				p.Positive().SetOffset(offset)
				p.Positive().BucketCounts().FromRaw(counts)
				at(p)
			}
		}))
		g := remotewrite.NewGeneration(7)
		b, _, err := otlp.NewTranslator(settings.Default[otlp.Settings]()).Decode(msg, g, rulesNow(), roomOf(msg))
		require.NoError(t, err)
		require.Len(t, b.Hists, 2)
		reduced := b.Hists[0].H // scale 4, as though 10
		require.NoError(t, reduced.ReduceResolution(2))
		require.Equal(t, reduced.ToFloat(nil).Compact(0).PositiveSpans, b.Hists[1].H.ToFloat(nil).Compact(0).PositiveSpans, offset)
		require.Equal(t, reduced.ToFloat(nil).Compact(0).PositiveBuckets, b.Hists[1].H.ToFloat(nil).Compact(0).PositiveBuckets, offset)
		b.Release()
	}
}

// TestTargetInfoOfFarPoints: the time between data points that lie too far apart is not filled.
func TestTargetInfoOfFarPoints(t *testing.T) {
	md := metrics(func(ms pmetric.MetricSlice) {
		m := ms.AppendEmpty()
		m.SetName("x")
		list := m.SetEmptyGauge().DataPoints()
		for _, ago := range []pcommon.Timestamp{0, 3 * 365 * 86_400_000} {
			p := list.AppendEmpty()
			p.SetIntValue(1)
			p.SetTimestamp((now - ago) * 1_000_000)
		}
	})
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.name", "h")
	got := decode(t, otlp.NewTranslator(settings.Default[otlp.Settings]()), marshal(t, md), remotewrite.NewGeneration(7))
	require.Len(t, got.samples, 3)
}

func TestMalformed(t *testing.T) {
	translator := otlp.NewTranslator(settings.Default[otlp.Settings]())
	for _, msg := range []string{"\n", "\n\x05abc", "\x08\x01", "\n\x02\n\x09", "{}"} {
		require.ErrorIs(t, try(translator, []byte(msg), remotewrite.NewGeneration(7)).err, otlp.ErrMalformed, "%q", msg)
	}
	for _, msg := range []string{"", "{", `{"resourceMetrics": 5}`, `{"resourceMetrics": []} x`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)} {
		room := roomOf([]byte(msg))
		_, err := otlp.FromJSON([]byte(msg), &room)
		require.ErrorIs(t, err, otlp.ErrMalformed, "%.50q", msg)
	}
	room := remotewrite.NewRoom(100, 1000, 1000, nil)
	var dense *remotewrite.DenseError
	_, err := otlp.FromJSON([]byte(`{"resourceMetrics":[`+strings.Repeat("{},", 100)+`{}]}`), &room)
	require.ErrorAs(t, err, &dense)
}

func TestAnswers(t *testing.T) {
	require.Empty(t, otlp.Accepted(otlp.Protobuf, 0, ""))
	require.JSONEq(t, `{}`, string(otlp.Accepted(otlp.JSON, 0, "")))
	require.JSONEq(t, `{"partialSuccess":{"rejectedDataPoints":"7","errorMessage":"why"}}`, string(otlp.Accepted(otlp.JSON, 7, "why")))
	answer := pmetricotlp.NewExportResponse()
	require.NoError(t, answer.UnmarshalProto(otlp.Accepted(otlp.Protobuf, 7, "why")))
	require.EqualValues(t, 7, answer.PartialSuccess().RejectedDataPoints())
	require.Equal(t, "why", answer.PartialSuccess().ErrorMessage())
	require.JSONEq(t, `{"code":3,"message":"why"}`, string(otlp.Refused(otlp.JSON, 400, "why")))
	var refused status.Status
	require.NoError(t, proto.Unmarshal(otlp.Refused(otlp.Protobuf, 503, "why"), &refused))
	require.EqualValues(t, 14, refused.Code)
	require.Equal(t, "why", refused.Message)
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 16))
		f.Add(marshal(f, randomMetrics(r, seed%2 == 0)))
	}
	translator := otlp.NewTranslator(settings.Default[otlp.Settings]())
	f.Fuzz(func(t *testing.T, msg []byte) {
		g := remotewrite.NewGeneration(7)
		unknown := try(translator, slices.Clone(msg), g)
		known := try(translator, slices.Clone(msg), g)
		if unknown.err != nil {
			require.Error(t, known.err)
			return
		}
		require.Equal(t, unknown.samples, known.samples)
		require.Equal(t, unknown.rejected, known.rejected)
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, points := range []int{1, 10} {
		b.Run(fmt.Sprintf("points=%d", points), func(b *testing.B) {
			msg := marshal(b, metrics(func(ms pmetric.MetricSlice) {
				for i := range 1000 / points {
					m := ms.AppendEmpty()
					m.SetName(fmt.Sprint("http.server.request.count.", i))
					m.SetUnit("By")
					m.SetDescription("Requests.")
					s := m.SetEmptySum()
					s.SetIsMonotonic(true)
					s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					for j := range points {
						p := s.DataPoints().AppendEmpty()
						at(p)
						p.SetDoubleValue(float64(j))
						p.Attributes().PutStr("http.request.method", "GET")
						p.Attributes().PutStr("http.route", fmt.Sprint("/api/v", j))
						p.Attributes().PutInt("http.response.status_code", 200)
					}
				}
			}))
			translator, g, rules := otlp.NewTranslator(settings.Default[otlp.Settings]()), remotewrite.NewGeneration(7), rulesNow()
			b.ReportAllocs()
			for b.Loop() {
				batch, _, err := translator.Decode(msg, g, rules, roomOf(msg))
				if err != nil {
					b.Fatal(err)
				}
				g.Stored.Note(batch.Metadata) // as though it were durable
				batch.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
		})
	}
}

// FuzzFromJSON holds that the protobuf form of a message has what its JSON form has, within the
// memory that is reserved for it.
func FuzzFromJSON(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 17))
		msg, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(randomMetrics(r, seed%2 == 0))
		require.NoError(f, err)
		f.Add(msg)
	}
	f.Add([]byte(`{"resourceMetrics":[{"scope_metrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[{"asInt":"1","timeUnixNano":1700000000000000000}]}}]}]}]}`))
	f.Add([]byte(`{"resourceMetrics":[{"resource":{"attributes":[{"key":"k","value":{"kvlistValue":{"values":[{"key":"x","value":{"bytesValue":"AQI="}}]}}}]}}]}`))
	translator := otlp.NewTranslator(settings.Default[otlp.Settings]())
	f.Fuzz(func(t *testing.T, msg []byte) {
		room := roomOf(msg)
		out, err := otlp.FromJSON(slices.Clone(msg), &room)
		if err != nil {
			var dense *remotewrite.DenseError
			require.True(t, errors.Is(err, otlp.ErrMalformed) || errors.As(err, &dense), "%v", err)
			return
		}
		want, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(msg)
		require.NoError(t, err)
		got, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(out)
		require.NoError(t, err)
		require.Equal(t, marshal(t, want), marshal(t, got))
		try(translator, out, remotewrite.NewGeneration(7))
	})
}
