package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/sql/flightsql"
)

// FlightSettings are those of the server. The tags are those of package settings.
type FlightSettings struct {
	Listen         string `name:"flight.listen-address" basic:"" placeholder:"HOST:PORT" help:"Address for Arrow Flight SQL (gRPC, with TLS if --web.config.file has it). Usual port: 31337. Default: none." when:"Set it for ADBC clients. They have the tokens, tenants and limits of /api/v1/sql."`
	MaxConnections int    `name:"flight.max-connections" default:"256" min:"1" help:"Flight SQL connections at once. One more replaces one without a call, and is closed if there is none." when:"Raise it if more clients stay connected."`

	MaxCalls        int `name:"flight.max-calls" default:"128" min:"1" help:"Flight SQL calls at once; others are refused. Each holds --flight.max-message-bytes of --memory-limit." when:"Raise it if clients get RESOURCE_EXHAUSTED."`
	MaxMessageBytes int `name:"flight.max-message-bytes" type:"bytes" default:"1MiB" min:"4KiB" help:"Largest message of a Flight SQL call: a statement with its parameters." when:"Raise it if clients get \"received message larger than max\"."`
}

// FlightServer is the stage.
type FlightServer struct {
	process.Idle
	set  FlightSettings
	open *flightsql.Server
}

// connections are those of a gRPC server, which closes its listener when it ends, and then waits for
// the first bytes of all connections.
type connections struct{ *process.Connections }

// Close implements net.Listener.
func (c connections) Close() error {
	defer c.CloseSilent()
	return c.Connections.Close()
}

// NewFlight returns the stage for settings with an address.
func NewFlight(s FlightSettings) *FlightServer { return &FlightServer{set: s} }

// Build opens the server, which asks the process's own handler. It is built after the query stage.
func (s *FlightServer) Build(ctx context.Context, p process.Parts) (_ process.Stage, err error) {
	if p.Handler == nil {
		return nil, errors.New("listen for Flight SQL: this process has no HTTP server")
	}
	if p.Web.Users {
		return nil, errors.New("--flight.listen-address: Flight SQL does not know the users of --web.config.file; use --auth.tokens or client certificates in their place")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.set.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for Flight SQL: %w", err)
	}
	conns := connections{process.NewConnections(ln, "flight", "flight.max-connections", s.set.MaxConnections, p.HTTP.WriteStallTimeout)}
	s.open, err = flightsql.Open(flightsql.Settings{
		Connections: conns, TLS: p.Web.TLS("h2"), IdleTimeout: p.HTTP.IdleTimeout, ConnectTimeout: p.HTTP.ReadHeaderTimeout, ReadTimeout: p.HTTP.ReadTimeout,
		MaxCalls: s.set.MaxCalls, MaxMessageBytes: s.set.MaxMessageBytes, Memory: p.Memory,
		Version: telemetry.ReadBuild().Version, Logger: p.Logger, Registry: p.Registry,
	}, ask.Loopback(p.Handler))
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	conns.Register(p.Registry)
	p.Logger.Info("serving Flight SQL", "listen", s.open.Addr())
	return s, nil
}

// Addr is where the server listens.
func (s *FlightServer) Addr() string { return s.open.Addr() }

// Drain implements process.Stage: statements under way end.
func (s *FlightServer) Drain(ctx context.Context) error { return s.open.Close(ctx) }
