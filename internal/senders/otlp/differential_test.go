package otlp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	upstream "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/otlp"
)

// oracle gathers what Prometheus' translation appends, in the form of decode.
type oracle struct {
	storage.AppenderV2
	samples []string
	meta    map[string]string
}

func (o *oracle) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, _ *histogram.FloatHistogram, opts storage.AOptions) (storage.SeriesRef, error) {
	o.meta[opts.MetricFamilyName] = fmt.Sprint(opts.Metadata)
	name := ls.Copy().String()
	if h != nil {
		o.samples = append(o.samples, histogramText(name, st, t, h))
	} else {
		o.samples = append(o.samples, floatText(name, st, t, v))
	}
	for _, e := range opts.Exemplars {
		if !e.HasTs {
			e.Ts = t
		}
		o.samples = append(o.samples, exemplarText(name, e.Labels, e.Ts, e.Value))
	}
	return 0, nil
}

func floatText(name string, st, t int64, v float64) string {
	return fmt.Sprintf("%s %x from %d @%d", name, math.Float64bits(v), st, t)
}

func exemplarText(name string, lset labels.Labels, t int64, v float64) string {
	return fmt.Sprintf("%s exemplar %s %v @%d", name, lset, v, t)
}

func histogramText(name string, st, t int64, h *histogram.Histogram) string {
	if value.IsStaleNaN(h.Sum) {
		return fmt.Sprintf("%s stale from %d @%d", name, st, t)
	}
	return fmt.Sprintf("%s %s sum %x schema %d hint %d custom %v from %d @%d", name, h.ToFloat(nil).Compact(0), math.Float64bits(h.Sum), h.Schema, h.CounterResetHint, h.CustomValues, st, t)
}

// TestLikePrometheus compares random metrics with Prometheus' translation, for random settings: the
// first time when all series are new, and again when all are known.
func TestLikePrometheus(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 15))
		set := randomSettings(r)
		md := randomMetrics(r, set.NativeDelta)
		o := &oracle{meta: map[string]string{}}
		_, err := upstream.NewPrometheusConverter(o).FromMetrics(context.Background(), md, upstreamSettings(set))
		require.NoError(t, err, seed)
		slices.Sort(o.samples)
		want := slices.Compact(o.samples)

		msg, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
		require.NoError(t, err)
		translator, g := otlp.NewTranslator(set), remotewrite.NewGeneration(seed)
		for _, message := range []func() []byte{
			func() []byte { return msg },
			func() []byte { return msg },
			func() []byte {
				room := roomOf(text)
				out, err := otlp.FromJSON(text, &room)
				require.NoError(t, err)
				return out
			},
		} {
			got := decode(t, translator, message(), g)
			require.NoError(t, got.offence, "seed %d", seed)
			require.Zero(t, got.rejected)
			require.Equal(t, want, slices.Compact(got.samples), "seed %d, %+v", seed, set)
			require.Equal(t, o.meta, got.meta, "seed %d, %+v", seed, set)
		}
	}
}

// TestSection: every field of upstream's section otlp sets what it sets there.
func TestSection(t *testing.T) {
	fields := reflect.TypeFor[config.OTLPConfig]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
		text := name + ": " + map[string]string{
			"string": "NoTranslation", "bool": "true", "slice": "[x]",
		}[fields.Field(i).Type.Kind().String()] + "\n"
		switch name {
		case "ignore_resource_attributes":
			text += "promote_all_resource_attributes: true\n"
		case "label_name_underscore_sanitization", "label_name_preserve_multiple_underscores":
			text = name + ": false\n"
		}
		want, got := config.DefaultOTLPConfig, settings.Default[otlp.Settings]()
		require.NoError(t, yaml.Unmarshal([]byte(text), &want))
		require.NoError(t, yaml.Unmarshal([]byte(text), &got))
		require.NotEqual(t, settings.Default[otlp.Settings](), got, text)
		section := config.OTLPConfig{
			PromoteAllResourceAttributes: got.PromoteAll, PromoteResourceAttributes: got.Promote, IgnoreResourceAttributes: got.Ignore,
			TranslationStrategy: otlptranslator.TranslationStrategyOption(got.TranslationStrategy), KeepIdentifyingResourceAttributes: got.KeepIdentifying,
			ConvertHistogramsToNHCB: got.NHCB, PromoteScopeMetadata: got.PromoteScopeMetadata,
			LabelNameUnderscoreSanitization: got.KeyPrefix, LabelNamePreserveMultipleUnderscores: got.Underscores,
		}
		require.Equal(t, want, section, text)
	}
}

func randomSettings(r *rand.Rand) otlp.Settings {
	s := settings.Default[otlp.Settings]()
	s.TranslationStrategy = []string{"UnderscoreEscapingWithSuffixes", "UnderscoreEscapingWithoutSuffixes", "NoUTF8EscapingWithSuffixes", "NoTranslation"}[r.IntN(4)]
	for _, b := range []*bool{&s.PromoteAll, &s.KeepIdentifying, &s.PromoteScopeMetadata, &s.NHCB, &s.TypeAndUnitLabels, &s.KeyPrefix, &s.Underscores, &s.NativeDelta} {
		*b = r.IntN(2) == 0
	}
	if s.PromoteAll {
		s.Ignore = []string{"process.pid"}
	} else {
		s.Promote = []string{"process.pid", "host.name"}
	}
	return s
}

func upstreamSettings(s otlp.Settings) upstream.Settings {
	return upstream.Settings{
		AddMetricSuffixes: s.TranslationStrategy == "UnderscoreEscapingWithSuffixes" || s.TranslationStrategy == "NoUTF8EscapingWithSuffixes",
		AllowUTF8:         s.UTF8(),
		PromoteResourceAttributes: upstream.NewPromoteResourceAttributes(config.OTLPConfig{
			PromoteAllResourceAttributes: s.PromoteAll, PromoteResourceAttributes: s.Promote, IgnoreResourceAttributes: s.Ignore,
		}),
		KeepIdentifyingResourceAttributes: s.KeepIdentifying, ConvertHistogramsToNHCB: s.NHCB, AllowDeltaTemporality: s.NativeDelta,
		PromoteScopeMetadata: s.PromoteScopeMetadata, EnableTypeAndUnitLabels: s.TypeAndUnitLabels,
		LabelNameUnderscoreSanitization: s.KeyPrefix, LabelNamePreserveMultipleUnderscores: s.Underscores,
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomMetrics(r *rand.Rand, deltas bool) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range 1 + r.IntN(3) {
		rm := md.ResourceMetrics().AppendEmpty()
		randomAttributes(r, rm.Resource().Attributes(), "service.name", "service.namespace", "service.instance.id", "host.name", "process.pid", "os type", "job")
		for range 1 + r.IntN(2) {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(pick(r, "", "scope", "other"))
			sm.Scope().SetVersion(pick(r, "", "1.2"))
			sm.SetSchemaUrl(pick(r, "", "https://example.com"))
			randomAttributes(r, sm.Scope().Attributes(), "a b", "c")
			for range r.IntN(5) {
				randomMetric(r, sm.Metrics().AppendEmpty(), deltas)
			}
		}
	}
	return md
}

func randomAttributes(r *rand.Rand, m pcommon.Map, keys ...string) {
	for _, k := range keys {
		switch r.IntN(9) {
		case 0, 1, 2:
			m.PutStr(k, pick(r, "x", "köln", "a/b", "2", ""))
		case 3:
			m.PutInt(k, r.Int64N(1<<40)-1<<39)
		case 4:
			m.PutDouble(k, pick(r, 0.5, 1e21, 1e-7, -3, math.Inf(1), math.NaN()))
		case 5:
			m.PutBool(k, r.IntN(2) == 0)
		case 6:
			s := m.PutEmptySlice(k)
			s.AppendEmpty().SetStr("a<b")
			s.AppendEmpty().SetEmptyMap().PutDouble("z", 1.5)
			s.AppendEmpty().SetEmptyBytes().FromRaw([]byte{1, 2})
		case 7:
			m.PutEmptyBytes(k).FromRaw([]byte("bytes"))
		}
	}
}

const now = 1_700_000_000_000 // ms

func randomMetric(r *rand.Rand, m pmetric.Metric, deltas bool) {
	m.SetName(pick(r, "http.server.duration", "queue_length", "1st", "ünit", "total", "a..b"))
	m.SetUnit(pick(r, "", "s", "By/s", "1", "{requests}", "ünits", "%"))
	m.SetDescription(m.Name())
	temporality := pmetric.AggregationTemporalityCumulative
	if deltas && r.IntN(2) == 0 {
		temporality = pmetric.AggregationTemporalityDelta
	}
	points := r.IntN(4)
	switch r.IntN(5) {
	case 0:
		s := m.SetEmptyGauge()
		for range points {
			randomNumber(r, s.DataPoints().AppendEmpty())
		}
	case 1:
		s := m.SetEmptySum()
		s.SetIsMonotonic(r.IntN(2) == 0)
		s.SetAggregationTemporality(temporality)
		for range points {
			randomExemplars(r, randomNumber(r, s.DataPoints().AppendEmpty()).Exemplars())
		}
	case 2:
		s := m.SetEmptyHistogram()
		s.SetAggregationTemporality(temporality)
		for range points {
			randomExplicit(r, s.DataPoints().AppendEmpty())
		}
	case 3:
		s := m.SetEmptyExponentialHistogram()
		s.SetAggregationTemporality(temporality)
		for range points {
			randomExponential(r, s.DataPoints().AppendEmpty())
		}
	case 4:
		s := m.SetEmptySummary()
		for range points {
			randomSummary(r, s.DataPoints().AppendEmpty())
		}
	}
}

type anyPoint interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
}

func randomPoint(r *rand.Rand, p anyPoint) {
	randomAttributes(r, p.Attributes(), "code", "http.route", "http route", "_x", "__name__", "le", "9", "host.name", "a__b")
	p.SetTimestamp(pcommon.Timestamp(now*1_000_000 - r.Int64N(1_800_000_000_000)))
	p.SetStartTimestamp(pick(r, 0, pcommon.Timestamp(now-3_600_000)*1_000_000))
	if r.IntN(8) == 0 {
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
}

func randomNumber(r *rand.Rand, p pmetric.NumberDataPoint) pmetric.NumberDataPoint {
	randomPoint(r, p)
	if r.IntN(2) == 0 {
		p.SetIntValue(r.Int64() - 1<<62)
	} else {
		p.SetDoubleValue(r.NormFloat64())
	}
	return p
}

// randomExemplars adds exemplars in the order of their values, in which Prometheus expects them.
func randomExemplars(r *rand.Rand, list pmetric.ExemplarSlice) {
	at := -1.0
	for i := range r.IntN(4) {
		e := list.AppendEmpty()
		if i == 0 {
			e.SetIntValue(-1)
		} else {
			at += r.Float64()
			e.SetDoubleValue(at)
		}
		e.SetTimestamp(pick(r, 0, pcommon.Timestamp(now*1_000_000)))
		e.SetTraceID(pick(r, pcommon.TraceID{}, pcommon.TraceID{1, 15: 2}))
		e.SetSpanID(pick(r, pcommon.SpanID{}, pcommon.SpanID{7: 3}))
		randomAttributes(r, e.FilteredAttributes(), "user", "köln")
		if r.IntN(5) == 0 {
			e.FilteredAttributes().PutStr("long", fmt.Sprintf("%0100d", 1))
		}
	}
}

func randomExplicit(r *rand.Rand, p pmetric.HistogramDataPoint) {
	randomPoint(r, p)
	bounds := []float64{-1, 0, 0.001, 0.5, 1, 2.5}[:r.IntN(7)]
	p.ExplicitBounds().FromRaw(bounds)
	var count uint64
	for range len(bounds) + 1 {
		n := pick(r, 0, 0, uint64(r.IntN(100)))
		p.BucketCounts().Append(n)
		count += n
	}
	p.SetCount(count)
	if r.IntN(3) > 0 {
		p.SetSum(r.Float64())
	}
	randomExemplars(r, p.Exemplars())
}

func randomExponential(r *rand.Rand, p pmetric.ExponentialHistogramDataPoint) {
	randomPoint(r, p)
	p.SetScale(int32(r.IntN(24) - 4))
	var count uint64
	for _, side := range []pmetric.ExponentialHistogramDataPointBuckets{p.Positive(), p.Negative()} {
		side.SetOffset(int32(r.IntN(2000) - 1000))
		for range pick(r, 0, r.IntN(10), r.IntN(300)) {
			n := pick(r, 0, 0, 0, uint64(r.IntN(100)))
			if p.Scale() > histogram.ExponentialSchemaMax {
				// Prometheus 3.15 puts observations behind an empty bucket into a bucket of
				// smaller values when it merges buckets; TestMergedBuckets has these cases.
				n = 1 + uint64(r.IntN(100))
			}
			side.BucketCounts().Append(n)
			count += n
		}
	}
	p.SetZeroCount(uint64(r.IntN(5)))
	p.SetCount(count + p.ZeroCount())
	if r.IntN(3) > 0 {
		p.SetSum(r.Float64())
	}
	randomExemplars(r, p.Exemplars())
}

func randomSummary(r *rand.Rand, p pmetric.SummaryDataPoint) {
	randomPoint(r, p)
	p.SetCount(uint64(r.IntN(100)))
	p.SetSum(r.Float64())
	for _, q := range []float64{0, 0.5, 0.999, 1}[:r.IntN(5)] {
		v := p.QuantileValues().AppendEmpty()
		v.SetQuantile(q)
		v.SetValue(r.Float64())
	}
}
