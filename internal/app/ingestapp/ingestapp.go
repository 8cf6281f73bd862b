// Package ingestapp connects the ingest stage to a process: its mode, its share of the memory and
// its routes. It also moves dead letters back to the write queue (Redrive).
package ingestapp

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/senders/datadog"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/internal/store/recent"
)

// datadogRoutes are those of Datadog's agent and clients, below /datadog as with VictoriaMetrics.
// Version 1 of series is only there: its own path is that of Prometheus' series.
func datadogRoutes(in *ingest.Stage) (routes []process.Route) {
	v2 := in.DatadogHandler(datadog.V2)
	for pattern, h := range map[string]http.Handler{
		"POST /datadog/api/v1/series":     in.DatadogHandler(datadog.V1),
		"POST /datadog/api/v2/series":     v2,
		"POST /api/v2/series":             v2,
		"POST /datadog/api/beta/sketches": in.DatadogHandler(datadog.Sketches),
		"GET /datadog/api/v1/validate":    ingest.DatadogAnswer(http.StatusOK, `{"valid":true}`),
		"GET /api/v1/validate":            ingest.DatadogAnswer(http.StatusOK, `{"valid":true}`),
		"POST /datadog/api/v1/check_run":  ingest.DatadogAnswer(http.StatusAccepted, `{"status":"ok"}`),
		"POST /datadog/api/v1/metadata":   ingest.DatadogAnswer(http.StatusOK, `{}`),
		"POST /datadog/intake/":           ingest.DatadogAnswer(http.StatusOK, `{}`),
	} {
		_, name, _ := strings.Cut(pattern, " ")
		routes = append(routes, process.Route{Pattern: pattern, Name: name, Access: auth.Write, APIKey: true, Handler: h})
	}
	return routes
}

var _ process.Consumer = stage{}

// stage implements process.Stage. It implements process.Consumer in every mode, so that messages
// that are left on the queue after a change of mode are still consumed.
type stage struct {
	process.Idle
	ingest *ingest.Stage
}

// New returns the builder of the ingest stage. It passes the stage to those who append to it in
// this process. The stage keeps the content of its segments in what kept returns; nil: nowhere.
func New(kept func(process.Parts) *recent.Segments, s ingest.Settings, users ...func(*ingest.Stage)) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		s := resolved(s, p.Memory.Limit(), p.Flags)
		opts := []ingest.Option{ingest.Within(p.Memory)}
		if kept != nil {
			opts = append(opts, ingest.Keep(kept(p)))
		}
		if s.QueueURL != "" {
			q, err := sqsqueue.Open(s.QueueURL, p.Registry)
			if err != nil {
				return nil, fmt.Errorf("start ingest: %w", err)
			}
			opts = append(opts, ingest.To(q), ingest.From(q))
		}
		in, err := ingest.New(s, p.Store, p.Registry, p.Logger, p.Now, opts...)
		if err != nil {
			return nil, fmt.Errorf("start ingest: %w", err)
		}
		p.Logger.Info("accepting remote_write", "mode", string(s.Mode))
		for _, use := range users {
			use(in)
		}
		return stage{ingest: in}, nil
	}
}

// Consume implements process.Consumer.
func (s stage) Consume(ctx context.Context, batch []lambda.Message) ([]string, error) {
	ds := make([]queue.Received, len(batch))
	for i, m := range batch {
		ds[i] = queue.Received{ID: m.ID, Handle: m.Handle, Body: m.Body, Sent: m.Sent, Receives: m.Receives}
	}
	failed, err := s.ingest.Consume(ctx, ds)
	if err != nil {
		return nil, fmt.Errorf("consume %d messages: %w", len(batch), err)
	}
	return failed, nil
}

// Routes implements process.Stage. Senders find the paths of their protocol: its own, Mimir's below
// /prometheus, and those of VictoriaMetrics.
func (s stage) Routes() []process.Route {
	var routes []process.Route
	in := s.ingest
	add := func(access auth.Access, h http.Handler, patterns ...string) {
		for _, p := range patterns {
			path := p[strings.IndexByte(p, ' ')+1:]
			routes = append(routes, process.Route{Pattern: p, Name: strings.Replace(path, "...", "", 1), Access: access, Handler: h})
		}
	}
	add(auth.Write, in.Handler(), "/api/v1/write", "/api/v1/push", "/prometheus/api/v1/write", "/prometheus/api/v1/push")
	add(auth.Write, in.TextHandler(), "POST /api/v1/import/prometheus", "POST /prometheus/api/v1/import/prometheus")
	add(auth.Write, in.CSVHandler(), "POST /api/v1/import/csv", "POST /prometheus/api/v1/import/csv")
	add(auth.Write, in.JSONLinesHandler(), "POST /api/v1/import", "POST /prometheus/api/v1/import")
	add(auth.Read, in.RefusedHandler(), "GET /api/v1/status/refused", "GET /prometheus/api/v1/status/refused")
	add(auth.Write, in.OpenTSDBHandler(), "POST /api/put", "POST /opentsdb/api/put")
	add(auth.Write, in.LineHandler(ingest.InfluxV1), "POST /write", "POST /influx/write")
	add(auth.Write, in.LineHandler(ingest.InfluxV2), "POST /api/v2/write", "POST /influx/api/v2/write")
	add(auth.Write, in.LineHandler(ingest.InfluxV3), "POST /api/v3/write_lp", "POST /influx/api/v3/write_lp")
	add(auth.Public, ingest.InfluxPing(), "GET /ping", "GET /influx/ping")
	add(auth.Write, ingest.InfluxQuery(), "GET /query", "GET /influx/query", "POST /query", "POST /influx/query")
	// The last path is the default of OpenTelemetry's exporters.
	add(auth.Write, in.OTLPHandler(), "POST /api/v1/otlp/v1/metrics", "POST /prometheus/api/v1/otlp/v1/metrics",
		"POST /otlp/v1/metrics", "POST /opentelemetry/v1/metrics", "POST /v1/metrics")
	for _, prefix := range []string{"/metrics/", "/api/v1/import/prometheus/metrics/"} { // of a Pushgateway's groups
		group := prefix + "{group...}"
		add(auth.Write, in.PushHandler(prefix), "PUT "+group, "POST "+group, "DELETE "+group)
	}
	return append(routes, datadogRoutes(in)...)
}

// Drain implements process.Stage: buffered samples become durable and their senders are answered.
func (s stage) Drain(ctx context.Context) error {
	if err := s.ingest.Close(ctx); err != nil {
		return fmt.Errorf("flush ingest: %w", err)
	}
	return nil
}

// resolved returns s with the mode that auto stands for in this process, and within its memory.
func resolved(s ingest.Settings, limit int64, given flags.Values) ingest.Settings {
	if s.Mode == ingest.Auto {
		s.Mode = chooseMode(s.QueueURL != "", lambda.Running(), lambda.Concurrency())
	}
	return within(s, limit, given)
}

// chooseMode resolves auto: only a process that takes several requests at once can let them share a
// segment.
func chooseMode(queue, function bool, concurrency int) ingest.Mode {
	switch {
	case !function || concurrency > 1:
		return ingest.Grouped
	case queue:
		return ingest.Buffered
	}
	return ingest.Direct
}

// within returns s with shares of the process's memory, limit bytes, in place of larger defaults:
// requests in flight have a quarter at most, known label sets an eighth. What the operator gave is
// kept, and one request still fits. limit 0 is none.
func within(s ingest.Settings, limit int64, given flags.Values) ingest.Settings {
	if limit <= 0 {
		return s
	}
	flags.Lower(given, "ingest.max-inflight-bytes", &s.MaxInflightBytes, max(limit/4, s.MaxRequestBytes+s.MaxDecodedBytes))
	flags.Lower(given, "ingest.max-known-bytes", &s.MaxKnownBytes, limit/8)
	flags.Lower(given, "ingest.max-series-bytes", &s.MaxSeriesBytes, limit/8)
	return s
}
