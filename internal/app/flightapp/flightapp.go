// Package flightapp makes a Flight SQL server a stage of a process.
package flightapp

import (
	"context"
	"errors"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/flightsql"
	"github.com/promlake/promlake/internal/loopback"
	"github.com/promlake/promlake/internal/telemetry"
)

// Settings are those of the server. The tags are those of package settings.
type Settings struct {
	Listen         string `name:"flight.listen-address" placeholder:"HOST:PORT" help:"Address for Arrow Flight SQL (gRPC, without TLS). Usual port: 31337. Default: none." when:"Set it for ADBC clients. They have the tokens, tenants and limits of /api/v1/sql."`
	MaxConnections int    `name:"flight.max-connections" default:"256" min:"1" help:"Flight SQL connections at once; others wait." when:"Raise it if more clients stay connected."`
}

// Server is the stage.
type Server struct {
	process.Idle
	set  Settings
	open *flightsql.Server
}

// New returns the stage for settings with an address.
func New(s Settings) *Server { return &Server{set: s} }

// Build opens the server, which asks the process's own handler. It is built after the query stage.
func (s *Server) Build(ctx context.Context, p process.Parts) (_ process.Stage, err error) {
	if p.Handler == nil {
		return nil, errors.New("listen for Flight SQL: this process has no HTTP server")
	}
	s.open, err = flightsql.Open(ctx, flightsql.Settings{
		Listen: s.set.Listen, MaxConnections: s.set.MaxConnections, IdleTimeout: p.IdleTimeout, Version: telemetry.ReadBuild().Version,
	}, loopback.Transport(p.Handler))
	if err != nil {
		return nil, err
	}
	p.Logger.Info("serving Flight SQL", "listen", s.open.Addr())
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.open.Addr() }

// Drain implements process.Stage: statements under way end.
func (s *Server) Drain(ctx context.Context) error { return s.open.Close(ctx) }
