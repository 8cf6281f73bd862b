// Package queryapp fits the query stage and its HTTP API into a process: their flags and their routes.
package queryapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/telemetry"
)

// Settings are those of the query stage and of its API.
type Settings struct {
	Query query.Settings
	API   api.Settings
}

// DefaultSettings returns the defaults of both.
func DefaultSettings() Settings {
	q, err := query.Settings{}.WithDefaults()
	if err != nil {
		panic(err) // the defaults are constants
	}
	a := api.DefaultSettings()
	a.LookbackDelta = q.LookbackDelta
	a.Parser = query.ParserOptions()
	a.Build.Revision = telemetry.ReadBuild().Revision
	return Settings{Query: q, API: a}
}

// stage implements process.Stage.
type stage struct {
	query   *query.Stage
	handler http.Handler
}

// New returns the builder of the query stage.
func New(s Settings) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		q, err := query.New(s.Query, p.Store, p.Registry, p.Logger, p.Now)
		if err != nil {
			return nil, fmt.Errorf("start query: %w", err)
		}
		h, err := api.New(s.API, backend{q.Engine(), q}, p.Now, p.Logger, p.Registry)
		if err != nil {
			return nil, fmt.Errorf("start query API: %w", errors.Join(err, q.Close()))
		}
		return stage{q, h}, nil
	}
}

// Routes implements process.Stage. The API measures its own handlers.
func (s stage) Routes() []process.Route {
	var routes []process.Route
	for _, p := range api.Patterns() {
		routes = append(routes, process.Route{Pattern: p, Handler: s.handler})
	}
	return routes
}

// Drain implements process.Stage: queries in flight have until the end of the shutdown's time.
func (stage) Drain(context.Context) error { return nil }

// Close implements process.Stage.
func (s stage) Close() error {
	if err := s.query.Close(); err != nil {
		return fmt.Errorf("close query: %w", err)
	}
	return nil
}
