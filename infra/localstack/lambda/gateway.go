package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/aws/signed"
	"github.com/promlake/promlake/tests/support/emulator"
)

// gateway is an HTTP API that passes requests on to functions by Lambda's Invoke API, as events of
// payload format 2.0. Its fields are flags.
type gateway struct {
	Listen   string        `name:"listen" help:"Address to serve HTTP on. Port 0 lets the kernel choose one."`
	Endpoint string        `name:"endpoint" help:"Lambda's endpoint; empty is AWS itself."`
	Region   string        `name:"region" help:"AWS region of the functions."`
	Ingest   string        `name:"ingest" required:"" help:"Name or ARN of the ingest function, which receives writes."`
	Query    string        `name:"query" required:"" help:"Name or ARN of the query function, which receives all other requests."`
	Rules    string        `name:"rules" help:"Name or ARN of the function that evaluates rules; empty: there is none, as without rules=on."`
	Timeout  time.Duration `name:"timeout" help:"Maximal wait for a function; API Gateway waits 30s."`
}

func newGateway() gateway {
	return gateway{Listen: "127.0.0.1:0", Region: "us-east-1", Timeout: emulator.MaxGatewayDuration}
}

// The HTTP API's routes to each function, equal to those of infra/serverless.yml and, for the
// function that evaluates rules, of infra/resources/rules.js. Other paths get 404.
var (
	ingestRoutes = []string{
		"POST /api/v1/write",
		"POST /api/v1/push",
		"POST /prometheus/api/v1/write",
		"POST /prometheus/api/v1/push",
		"POST /api/v1/remote_write",
		"POST /workspaces/{id}/api/v1/remote_write",
		"POST /api/v1/import/prometheus",
		"POST /prometheus/api/v1/import/prometheus",
		"POST /api/v1/import",
		"POST /prometheus/api/v1/import",
		"POST /api/v1/import/csv",
		"POST /prometheus/api/v1/import/csv",
		"POST /api/put",
		"POST /opentsdb/api/put",
		"POST /api/v1/otlp/v1/metrics",
		"POST /prometheus/api/v1/otlp/v1/metrics",
		"POST /otlp/v1/metrics",
		"POST /opentelemetry/v1/metrics",
		"POST /v1/metrics",
		"POST /api/v2/series",
		"GET /api/v1/validate",
		"POST /write",
		"POST /api/v2/write",
		"POST /api/v3/write_lp",
		"GET /query",
		"POST /query",
		"GET /ping",
		"GET /influx/{proxy+}",
		"POST /influx/{proxy+}",
		"GET /datadog/{proxy+}",
		"POST /datadog/{proxy+}",
		"PUT /metrics/{proxy+}",
		"POST /metrics/{proxy+}",
		"DELETE /metrics/{proxy+}",
		"PUT /api/v1/import/prometheus/metrics/{proxy+}",
		"POST /api/v1/import/prometheus/metrics/{proxy+}",
		"DELETE /api/v1/import/prometheus/metrics/{proxy+}",
	}
	queryRoutes = []string{
		"GET /api/v1/{proxy+}",
		"POST /api/v1/{proxy+}",
		"OPTIONS /api/v1/{proxy+}",
		"PUT /api/v1/dashboards/{proxy+}",
		"DELETE /api/v1/dashboards/{proxy+}",
		"GET /prometheus/api/v1/{proxy+}",
		"POST /prometheus/api/v1/{proxy+}",
		"OPTIONS /prometheus/api/v1/{proxy+}",
		"GET /workspaces/{id}/api/v1/{proxy+}",
		"POST /workspaces/{id}/api/v1/{proxy+}",
		"GET /federate",
		"GET /prometheus/federate",
		"GET /",
		"GET /dashboards",
		"GET /assets/page.js",
		"GET /assets/worker.js",
		"GET /assets/page.css",
		"GET /assets/licenses.txt",
		"GET /-/healthy",
		"GET /-/ready",
	}
	rulesRoutes = []string{ // more specific than those to the query function, as on AWS
		"GET /api/v1/rules",
		"GET /api/v1/alerts",
		"GET /api/v1/status/buildinfo",
		"GET /prometheus/api/v1/rules",
		"GET /prometheus/api/v1/alerts",
		"GET /prometheus/api/v1/status/buildinfo",
		"GET /workspaces/{id}/api/v1/rules",
		"GET /workspaces/{id}/api/v1/alerts",
		"GET /workspaces/{id}/api/v1/status/buildinfo",
		"GET /config/v1/{proxy+}",
		"POST /config/v1/{proxy+}",
		"DELETE /config/v1/{proxy+}",
		"GET /prometheus/config/v1/{proxy+}",
		"POST /prometheus/config/v1/{proxy+}",
		"DELETE /prometheus/config/v1/{proxy+}",
	}
)

// Run serves until ctx ends.
func (g *gateway) Run(ctx context.Context, out flags.Streams) error {
	log := slog.New(slog.NewTextHandler(out.Err, nil))
	client := &signed.Client{Service: "lambda", Region: g.Region, Endpoint: g.Endpoint}
	routes := map[string]emulator.Invoker{}
	add := func(function string, keys []string) {
		for _, k := range keys {
			routes[k] = remote{&lambda.Remote{Name: function, Client: client}, log}
		}
	}
	add(g.Ingest, ingestRoutes)
	add(g.Query, queryRoutes)
	if g.Rules != "" {
		add(g.Rules, rulesRoutes)
	}
	return serve(ctx, out, g.Listen, &emulator.Gateway{Routes: routes, Timeout: g.Timeout})
}
