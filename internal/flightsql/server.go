// Package flightsql speaks Arrow Flight SQL in front of the HTTP API: statements are answered by
// /api/v1/sql, so both have the same rules, tenants, tokens, limits and queue. The server keeps
// nothing between calls: handles of prepared statements hold the statement and its parameters.
//
// https://arrow.apache.org/docs/format/FlightSql.html
package flightsql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Settings of a server. Callers fill every field.
type Settings struct {
	Listen         string        // HOST:PORT
	MaxConnections int           // at once; others wait
	IdleTimeout    time.Duration // after which a connection without a call is closed
	Version        string        // of the program, for clients that ask
}

// Server is a Flight SQL server.
type Server struct {
	listener net.Listener
	grpc     *grpc.Server
	served   chan error
}

// Open listens, and answers with api: a transport to the handler of /api/v1/sql, which checks
// tokens and tenants.
func Open(ctx context.Context, s Settings, api http.RoundTripper) (*Server, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for Flight SQL: %w", err)
	}
	service := &service{api: &http.Client{Transport: api}}
	if err := service.describe(s.Version); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	out := &Server{listener: ln, served: make(chan error, 1), grpc: grpc.NewServer(
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: s.IdleTimeout}),
		grpc.StreamInterceptor(shakeHands),
	)}
	flight.RegisterFlightServiceServer(out.grpc, flightsql.NewFlightServer(service))
	go func() { out.served <- out.grpc.Serve(netutil.LimitListener(ln, s.MaxConnections)) }()
	return out, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server: it accepts no more calls, and waits for those under way until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop()
		<-done
	}
	if err := <-s.served; err != nil {
		return fmt.Errorf("serve Flight SQL: %w", err)
	}
	return nil
}
