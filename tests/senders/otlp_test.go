package senders

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore/filestore"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

const exports = 3

var observed = []float64{0.003, 0.05, 0.05, 0.5, 1, 3, 3.5, 700}

// TestGoSDK: OpenTelemetry's SDK and exporter for Go write counters, classic and exponential
// histograms with exemplars in both temporalities, compressed or not.
func TestGoSDK(t *testing.T) {
	for _, compression := range []otlpmetrichttp.Compression{otlpmetrichttp.NoCompression, otlpmetrichttp.GzipCompression} {
		for _, temporality := range []metricdata.Temporality{metricdata.CumulativeTemporality, metricdata.DeltaTemporality} {
			t.Run(fmt.Sprintf("compression=%d/temporality=%s", compression, temporality), func(t *testing.T) {
				testGoSDK(t, compression, temporality)
			})
		}
	}
}

func testGoSDK(t *testing.T, compression otlpmetrichttp.Compression, temporality metricdata.Temporality) {
	r := &receiver{}
	var err error
	r.store, err = filestore.New(t.TempDir())
	require.NoError(t, err)
	stage, err := ingest.New(ingest.DefaultSettings(), r.store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stage.Close(t.Context())) })
	server := httptest.NewServer(stage.OTLPHandler())
	t.Cleanup(server.Close)
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(server.URL+"/v1/metrics"), otlpmetrichttp.WithCompression(compression), otlpmetrichttp.WithTimeout(5*time.Minute),
		otlpmetrichttp.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality { return temporality }))
	require.NoError(t, err)
	reader := sdk.NewManualReader(sdk.WithTemporalitySelector(exporter.Temporality))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
		sdk.WithView(sdk.NewView(sdk.Instrument{Name: "payload"}, sdk.Stream{Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 3}})))

	record := recorder(t, provider.Meter("test"))
	times := map[string][]interval{} // of the points of each export, by instrument
	for range exports {
		record()
		var data metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &data))
		for _, m := range data.ScopeMetrics[0].Metrics {
			times[m.Name] = append(times[m.Name], intervalOf(t, m.Data))
		}
		require.NoError(t, exporter.Export(t.Context(), &data))
		for now := time.Now(); time.Now().UnixMilli() == now.UnixMilli(); { // the next points have another time
			time.Sleep(time.Millisecond)
		}
	}
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.NoError(t, provider.Shutdown(t.Context()))

	requireFloats(t, r, temporality, times)
	requireHistograms(t, r, temporality, times["payload"])
}

// interval has the start and the time of a point, ms.
type interval struct{ start, end int64 }

func intervalOf(t *testing.T, a metricdata.Aggregation) interval {
	t.Helper()
	switch a := a.(type) {
	case metricdata.Sum[int64]:
		return interval{a.DataPoints[0].StartTime.UnixMilli(), a.DataPoints[0].Time.UnixMilli()}
	case metricdata.Histogram[float64]:
		return interval{a.DataPoints[0].StartTime.UnixMilli(), a.DataPoints[0].Time.UnixMilli()}
	case metricdata.ExponentialHistogram[float64]:
		return interval{a.DataPoints[0].StartTime.UnixMilli(), a.DataPoints[0].Time.UnixMilli()}
	}
	require.FailNow(t, "unexpected kind", "%T", a)
	return interval{}
}

// recorder returns a function that counts 5, then observes all of observed, in a sampled span.
func recorder(t *testing.T, meter metric.Meter) func() {
	t.Helper()
	requests, err := meter.Int64Counter("requests", metric.WithUnit("By"), metric.WithDescription("Bytes."))
	require.NoError(t, err)
	seconds, err := meter.Float64Histogram("duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(0.1, 1))
	require.NoError(t, err)
	payload, err := meter.Float64Histogram("payload")
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx := trace.ContextWithSpanContext(context.Background(), span)
	return func() {
		requests.Add(ctx, 5, metric.WithAttributes(attribute.Int("code", 200)))
		for _, v := range observed {
			seconds.Record(ctx, v)
			payload.Record(ctx, v)
		}
	}
}

// requireFloats compares the samples of numbers and of the classic histogram, and the exemplars.
func requireFloats(t *testing.T, r *receiver, temporality metricdata.Temporality, times map[string][]interval) {
	t.Helper()
	var mark string
	if temporality == metricdata.DeltaTemporality {
		mark = `__temporality__="delta", `
	}
	var want []string
	for i := range exports {
		n := 1.0
		if temporality == metricdata.CumulativeTemporality {
			n = float64(i + 1)
		}
		add := func(name, labels string, v float64) {
			instrument, _, _ := strings.Cut(name, "_")
			at := times[instrument][i]
			want = append(want, fmt.Sprintf("{__name__=%q, %s%s} %d %d %x", name, mark, labels, at.start, at.end, math.Float64bits(v)))
		}
		add("requests_bytes_total", `code="200", job="shop"`, 5*n)
		sum := 0.0
		for range int(n) {
			for _, v := range observed {
				sum += v
			}
		}
		for le, count := range map[string]float64{"0.1": 3, "1": 5, "+Inf": 8} {
			add("duration_seconds_bucket", fmt.Sprintf("job=\"shop\", le=%q", le), count*n)
		}
		add("duration_seconds_count", `job="shop"`, 8*n)
		add("duration_seconds_sum", `job="shop"`, sum)
	}
	slices.Sort(want)
	stored, meta := r.stored(t)
	got := slices.DeleteFunc(slices.Clone(stored), func(s string) bool {
		return strings.Contains(s, "payload") || strings.Contains(s, "target_info") || strings.Contains(s, " exemplar ")
	})
	require.Equal(t, want, got)
	require.Contains(t, meta, segment.Metadata{Metric: "requests_bytes_total", Type: "counter", Help: "Bytes.", Unit: "bytes"})
	// The SDK keeps one of the observations of a classic bucket, and one for each native one.
	const span = `{span_id="0200000000000000", trace_id="01000000000000000000000000000000"}`
	for series, values := range map[string][]string{
		`{__name__="requests_bytes_total", ` + mark + `code="200", job="shop"}`:   {"5"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="0.1"}`:  {"0.003", "0.05"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="1"}`:    {"0.5", "1"},
		`{__name__="duration_seconds_bucket", ` + mark + `job="shop", le="+Inf"}`: {"3", "3.5", "700"},
		`{__name__="payload", ` + mark + `job="shop"}`:                            {"0.003", "0.05", "0.5", "1", "3", "3.5", "700"},
	} {
		n := 0
		for _, s := range stored {
			if rest, ok := strings.CutPrefix(s, series+" exemplar "); ok {
				n++
				fields := strings.SplitN(rest, " ", 3)
				require.Contains(t, values, fields[1], s)
				require.Equal(t, span, fields[2])
			}
		}
		require.GreaterOrEqual(t, n, exports, "%d exemplars of %s", n, series)
	}
}

// requireHistograms compares the buckets of the native histograms with the observations.
func requireHistograms(t *testing.T, r *receiver, temporality metricdata.Temporality, times []interval) {
	t.Helper()
	var got []interval
	for o, err := range r.store.List(t.Context(), key.SegmentsPrefix(tenant.Default), "") {
		require.NoError(t, err)
		for _, row := range r.rows(t, o.Key) {
			for _, s := range row.Hists {
				require.Equal(t, "payload", row.Labels.Get("__name__"))
				n := 1
				if temporality == metricdata.CumulativeTemporality {
					n = slices.Index(times, interval{s.ST, s.T}) + 1
				}
				require.Equal(t, counts(n), buckets(s.H))
				require.Equal(t, int32(3), s.H.Schema)
				require.Equal(t, uint64(n*len(observed)), s.H.Count)
				require.Equal(t, temporality == metricdata.DeltaTemporality, s.H.CounterResetHint == histogram.GaugeType)
				got = append(got, interval{s.ST, s.T})
			}
		}
	}
	require.ElementsMatch(t, times, got)
}

// counts returns how many of n times the observations lie in each bucket of schema 3, by its upper
// bound.
func counts(n int) map[string]int {
	out := map[string]int{}
	for _, v := range observed {
		out[bound(math.Exp2(math.Ceil(math.Log2(v)*8)/8))] += n
	}
	return out
}

func buckets(h *histogram.Histogram) map[string]int {
	out := map[string]int{}
	for it := h.PositiveBucketIterator(); it.Next(); {
		if b := it.At(); b.Count > 0 {
			out[bound(b.Upper)] = int(b.Count)
		}
	}
	return out
}

func bound(v float64) string { return fmt.Sprintf("%.6g", v) }
