// Command gateway is an API Gateway HTTP API for developers: it passes HTTP requests on to functions by Lambda's Invoke API, as events of
// payload format 2.0. LocalStack's free edition has no HTTP API; this stands in its place.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/lambda/lambdatest"
)

const (
	program     = "gateway"
	description = "An HTTP API in front of Promlake's functions, for a Lambda endpoint that has none, such as LocalStack's."
)

// cli is the grammar of the command line; its fields hold the defaults.
type cli struct {
	Listen   string        `name:"listen" help:"Address to serve HTTP on. Port 0 lets the kernel choose one."`
	Endpoint string        `name:"endpoint" help:"Lambda's endpoint; empty is AWS itself."`
	Region   string        `name:"region" help:"AWS region of the functions."`
	Ingest   string        `name:"ingest" required:"" help:"Name or ARN of the ingest function; takes remote_write."`
	Query    string        `name:"query" required:"" help:"Name or ARN of the query function; takes what asks."`
	Timeout  time.Duration `name:"timeout" help:"Longest wait for a function; an HTTP API waits 30s."`
}

func newCLI() *cli {
	return &cli{Listen: "127.0.0.1:0", Region: "us-east-1", Timeout: lambdatest.MaxGatewayDuration}
}

// The HTTP API's routes to each function, as infra/serverless.yml has them. Nothing else is reachable.
var (
	ingestRoutes = []string{
		"POST /api/v1/write",
		"POST /api/v1/push",
		"POST /prometheus/api/v1/write",
		"POST /prometheus/api/v1/push",
	}
	queryRoutes = []string{
		"GET /api/v1/{proxy+}",
		"POST /api/v1/{proxy+}",
		"OPTIONS /api/v1/{proxy+}",
		"GET /prometheus/api/v1/{proxy+}",
		"POST /prometheus/api/v1/{proxy+}",
		"OPTIONS /prometheus/api/v1/{proxy+}",
		"GET /federate",
		"GET /prometheus/federate",
		"GET /-/healthy",
		"GET /-/ready",
	}
)

// Run serves until ctx ends.
func (c *cli) Run(ctx context.Context, io flags.Streams) error {
	log := slog.New(slog.NewTextHandler(io.Err, nil))
	client, err := newClient(ctx, c.Region, c.Endpoint)
	if err != nil {
		return err
	}
	routes := map[string]lambdatest.Invoker{}
	for _, r := range ingestRoutes {
		routes[r] = remote{client, c.Ingest, log}
	}
	for _, r := range queryRoutes {
		routes[r] = remote{client, c.Query, log}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("open listener: %w", err)
	}
	srv := &http.Server{Handler: &lambdatest.Gateway{Routes: routes, Timeout: c.Timeout}, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if _, err := fmt.Fprintf(io.Out, "listening on http://%s\n", ln.Addr()); err != nil {
		return fmt.Errorf("tell address: %w", err)
	}
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func main() {
	io := flags.Streams{Out: os.Stdout, Err: os.Stderr}
	os.Exit(flags.Main(context.Background(), program, description, newCLI(), os.Args[1:], io))
}
