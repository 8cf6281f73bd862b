// Package ingestapp fits the ingest stage into a process: its flags and its routes.
package ingestapp

import (
	"context"
	"fmt"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/ingest"
)

// patterns are where senders expect to write: Prometheus' path and Mimir's, each also under Mimir's prefix.
var patterns = []string{
	"/api/v1/write",
	"/api/v1/push",
	"/prometheus/api/v1/write",
	"/prometheus/api/v1/push",
}

// stage implements process.Stage.
type stage struct{ ingest *ingest.Stage }

// New returns the builder of the ingest stage.
func New(s ingest.Settings) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		in, err := ingest.New(s, p.Store, p.Registry, p.Logger, p.Now)
		if err != nil {
			return nil, fmt.Errorf("start ingest: %w", err)
		}
		return stage{in}, nil
	}
}

// Routes implements process.Stage.
func (s stage) Routes() []process.Route {
	h := s.ingest.Handler()
	routes := make([]process.Route, 0, len(patterns))
	for _, p := range patterns {
		routes = append(routes, process.Route{Pattern: p, Name: p, Handler: h})
	}
	return routes
}

// Drain implements process.Stage: what is buffered becomes durable and its senders are answered.
func (s stage) Drain(ctx context.Context) error {
	if err := s.ingest.Close(ctx); err != nil {
		return fmt.Errorf("flush ingest: %w", err)
	}
	return nil
}

// Close implements process.Stage; Drain left nothing to release.
func (stage) Close() error { return nil }
