// Program sdk records counters and histograms with OpenTelemetry's SDK for Go, and exports them
// several times by OTLP over HTTP. It prints, as JSON, the start and the time in ms of the point of
// each export, by instrument. TestGoSDK in tests/senders runs it and knows what it records.
// usage: sdk [-gzip] [-delta] URL EXPORTS OBSERVATION...
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"
)

func main() {
	gzip := flag.Bool("gzip", false, "compress requests")
	delta := flag.Bool("delta", false, "delta temporality instead of cumulative")
	flag.Parse()
	compression, temporality := otlpmetrichttp.NoCompression, metricdata.CumulativeTemporality
	if *gzip {
		compression = otlpmetrichttp.GzipCompression
	}
	if *delta {
		temporality = metricdata.DeltaTemporality
	}
	if err := run(context.Background(), compression, temporality, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, compression otlpmetrichttp.Compression, temporality metricdata.Temporality, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("want URL EXPORTS OBSERVATION..., got %q", args)
	}
	exports, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("exports: %w", err)
	}
	var observed []float64
	for _, text := range args[2:] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("observation: %w", err)
		}
		observed = append(observed, v)
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(args[0]), otlpmetrichttp.WithCompression(compression), otlpmetrichttp.WithTimeout(5*time.Minute),
		otlpmetrichttp.WithTemporalitySelector(func(sdk.InstrumentKind) metricdata.Temporality { return temporality }))
	if err != nil {
		return fmt.Errorf("create exporter: %w", err)
	}
	reader := sdk.NewManualReader(sdk.WithTemporalitySelector(exporter.Temporality))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
		sdk.WithView(sdk.NewView(sdk.Instrument{Name: "payload"}, sdk.Stream{Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 3}})))
	record, err := recorder(ctx, provider.Meter("test"))
	if err != nil {
		return err
	}
	times := map[string][][2]int64{}
	for range exports {
		record(observed)
		var data metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &data); err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		for _, m := range data.ScopeMetrics[0].Metrics {
			times[m.Name] = append(times[m.Name], interval(m.Data))
		}
		if err := exporter.Export(ctx, &data); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		for now := time.Now(); time.Now().UnixMilli() == now.UnixMilli(); { // the next points have another time
			time.Sleep(time.Millisecond)
		}
	}
	if err := exporter.Shutdown(ctx); err != nil {
		return fmt.Errorf("shut the exporter down: %w", err)
	}
	if err := provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("shut the provider down: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// recorder returns a function that counts 5, then observes values, in a sampled span.
func recorder(ctx context.Context, meter metric.Meter) (func([]float64), error) {
	requests, err := meter.Int64Counter("requests", metric.WithUnit("By"), metric.WithDescription("Bytes."))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	seconds, err := meter.Float64Histogram("duration", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(0.1, 1))
	if err != nil {
		return nil, fmt.Errorf("create histogram: %w", err)
	}
	payload, err := meter.Float64Histogram("payload")
	if err != nil {
		return nil, fmt.Errorf("create histogram: %w", err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	ctx = trace.ContextWithSpanContext(ctx, span)
	return func(values []float64) {
		requests.Add(ctx, 5, metric.WithAttributes(attribute.Int("code", 200)))
		for _, v := range values {
			seconds.Record(ctx, v)
			payload.Record(ctx, v)
		}
	}, nil
}

// interval returns the start and the time of the first point, ms.
func interval(a metricdata.Aggregation) [2]int64 {
	var start, end time.Time
	switch a := a.(type) {
	case metricdata.Sum[int64]:
		start, end = a.DataPoints[0].StartTime, a.DataPoints[0].Time
	case metricdata.Histogram[float64]:
		start, end = a.DataPoints[0].StartTime, a.DataPoints[0].Time
	case metricdata.ExponentialHistogram[float64]:
		start, end = a.DataPoints[0].StartTime, a.DataPoints[0].Time
	}
	return [2]int64{start.UnixMilli(), end.UnixMilli()}
}
