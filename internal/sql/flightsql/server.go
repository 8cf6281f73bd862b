// Package flightsql speaks Arrow Flight SQL in front of the HTTP API: statements are answered by
// /api/v1/sql, so both have the same rules, tenants, tokens, limits and queue. The server keeps
// nothing between calls: handles of prepared statements hold the statement and its parameters.
//
// https://arrow.apache.org/docs/format/FlightSql.html
package flightsql

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/promlake/promlake/internal/base/memory"
)

// Connections bounds the connections of a server.
type Connections interface {
	net.Listener
	// Note takes down that a connection of the listener has calls (http.StateActive), or none
	// (http.StateIdle). Before the first note, it had none whose token is valid.
	Note(net.Conn, http.ConnState)
}

// Settings of a server. Callers fill every field but TLS.
type Settings struct {
	Connections    Connections
	TLS            *tls.Config   // nil: without TLS
	IdleTimeout    time.Duration // after which a connection without a call is closed
	ConnectTimeout time.Duration // within which a connection must speak HTTP/2
	ReadTimeout    time.Duration // within which the messages of a call must arrive

	MaxCalls        int            // at once
	MaxMessageBytes int            // of a message; a call acquires it from Memory
	Memory          *memory.Budget // of the process; nil: no limit

	Version  string // of the program, for clients that ask
	Logger   *slog.Logger
	Registry prometheus.Registerer
}

const (
	// maxStreams bounds the calls of a connection, and maxHeaderBytes the header of a call.
	maxStreams     = 32
	maxHeaderBytes = 32 << 10
	// windowBytes is what a call may send before it is read. It does not grow by itself.
	windowBytes = 64 << 10
)

// Server is a Flight SQL server.
type Server struct {
	listener net.Listener
	grpc     *grpc.Server
	served   chan error
}

// Open serves the connections, and answers with api: a transport to the handler of /api/v1/sql,
// which checks tokens and tenants.
func Open(s Settings, api http.RoundTripper) (*Server, error) {
	service := &service{api: &http.Client{Transport: api}, set: s, room: make(chan struct{}, s.MaxCalls), calls: promauto.With(s.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "promlake_flight_calls_total", Help: "Ended calls of Flight SQL by gRPC's code.",
	}, []string{"code"})}
	for id, v := range map[flightsql.SqlInfo]any{
		flightsql.SqlInfoFlightSqlServerName:         "Promlake",
		flightsql.SqlInfoFlightSqlServerVersion:      s.Version,
		flightsql.SqlInfoFlightSqlServerArrowVersion: "1.5",
		flightsql.SqlInfoFlightSqlServerReadOnly:     true,
		flightsql.SqlInfoFlightSqlServerSql:          true,
		flightsql.SqlInfoFlightSqlServerSubstrait:    false,
		flightsql.SqlInfoFlightSqlServerTransaction:  int32(flightsql.SqlTransactionNone),
		flightsql.SqlInfoFlightSqlServerCancel:       false,
		flightsql.SqlInfoDDLCatalog:                  false,
		flightsql.SqlInfoDDLSchema:                   false,
		flightsql.SqlInfoDDLTable:                    false,
		flightsql.SqlInfoIdentifierQuoteChar:         `"`,
	} {
		if err := service.RegisterSqlInfo(id, v); err != nil {
			return nil, err
		}
	}
	out := &Server{listener: s.Connections, served: make(chan error, 1), grpc: grpc.NewServer(
		grpc.Creds(known{insecure.NewCredentials(), s.TLS}), grpc.ConnectionTimeout(s.ConnectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: s.IdleTimeout}),
		grpc.StreamInterceptor(service.call),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaderBytes), grpc.MaxRecvMsgSize(s.MaxMessageBytes), grpc.StaticStreamWindowSize(windowBytes),
	)}
	flight.RegisterFlightServiceServer(streamed{out.grpc}, flightsql.NewFlightServer(service))
	go func() { out.served <- out.grpc.Serve(s.Connections) }()
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
