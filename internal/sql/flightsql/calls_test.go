package flightsql

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/promlake/promlake/internal/base/memory"
)

// unbounded are connections without a limit.
type unbounded struct{ net.Listener }

func (unbounded) Note(net.Conn, http.ConnState) {}

// noting counts the notes of connections: one when a call begins, one when it ends.
type noting struct {
	Connections
	notes *atomic.Int64
}

func (n noting) Note(net.Conn, http.ConnState) { n.notes.Add(1) }

// api is the HTTP API behind a server: the token is "t", and a statement panics.
type api struct{}

func (api) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Header.Get("Authorization") != "Bearer t":
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader(`{"errorType":"unauthorized","error":"no token"}`))}, nil
	case r.URL.Path == "/api/v1/sql":
		panic("a defect")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// open serves, and returns a client, the context of its calls, and the number of ended calls by
// code.
func open(t *testing.T, change func(*Settings)) (pb.FlightServiceClient, context.Context, func(codes.Code) float64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	set := Settings{
		Connections: unbounded{ln}, IdleTimeout: time.Hour, ConnectTimeout: time.Hour, ReadTimeout: time.Hour, MaxCalls: 8, MaxMessageBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler), Registry: reg,
	}
	change(&set)
	s, err := Open(set, api{})
	require.NoError(t, err)
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		require.NoError(t, s.Close(context.Background()))
	})
	count := func(code codes.Code) float64 {
		all, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range all {
			for _, m := range f.Metric {
				if f.GetName() == "promlake_flight_calls_total" && m.Label[0].GetValue() == code.String() {
					return m.Counter.GetValue()
				}
			}
		}
		return 0
	}
	return pb.NewFlightServiceClient(conn), metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer t"), count
}

// request is a descriptor with a command.
func request(t *testing.T, command proto.Message) *flight.FlightDescriptor {
	t.Helper()
	a, err := anypb.New(command)
	require.NoError(t, err)
	b, err := proto.Marshal(a)
	require.NoError(t, err)
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}
}

// TestEveryMethodNeedsAToken: no method waits for a message before it has a token.
func TestEveryMethodNeedsAToken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, err := Open(Settings{Connections: unbounded{ln}, ConnectTimeout: time.Hour, MaxMessageBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)}, api{})
	require.NoError(t, err)
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	var methods []string
	for _, m := range pb.FlightService_ServiceDesc.Methods {
		methods = append(methods, m.MethodName)
	}
	for _, m := range pb.FlightService_ServiceDesc.Streams {
		methods = append(methods, m.StreamName)
	}
	require.Greater(t, len(methods), 8)
	for _, m := range methods {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+pb.FlightService_ServiceDesc.ServiceName+"/"+m)
		require.NoError(t, err)
		require.Equal(t, codes.Unauthenticated, status.Code(stream.RecvMsg(&flight.Result{})), m)
	}
	require.NoError(t, conn.Close())
	require.NoError(t, s.Close(t.Context()))
}

// TestPanics: a defect ends a call, and not the process.
func TestPanics(t *testing.T) {
	c, ctx, count := open(t, func(*Settings) {})
	_, err := c.GetSchema(ctx, request(t, &pb.CommandStatementQuery{Query: "SELECT 1"}))
	require.Equal(t, codes.Internal, status.Code(err))
	require.ErrorContains(t, err, "internal error, see the server's log")
	info, err := c.GetFlightInfo(ctx, request(t, &pb.CommandStatementQuery{Query: "SELECT 1"}))
	require.NoError(t, err)
	stream, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Internal, status.Code(err))
	require.InDelta(t, 2, count(codes.Internal), 0)
}

// TestCallsAreBounded: a call holds memory from its beginning to its end, and is refused without.
func TestCallsAreBounded(t *testing.T) {
	b := memory.New(1<<30, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	var notes atomic.Int64
	c, ctx, _ := open(t, func(s *Settings) {
		s.MaxCalls, s.Memory, s.Connections = 2, b, noting{s.Connections, &notes}
	})
	put := func(ctx context.Context) pb.FlightService_DoPutClient {
		stream, err := c.DoPut(ctx)
		require.NoError(t, err)
		return stream
	}
	refused := func(code codes.Code, text string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, err := c.GetFlightInfo(ctx, request(t, &pb.CommandGetCatalogs{}))
			return status.Code(err) == code && strings.Contains(err.Error(), text)
		}, 2*time.Minute, time.Millisecond)
	}
	some, end := context.WithCancel(ctx)
	put(some)
	put(some)
	require.Eventually(t, func() bool { return notes.Load() == 2 }, 2*time.Minute, time.Millisecond)
	refused(codes.ResourceExhausted, "the limit is 2; retry later, or raise --flight.max-calls")
	end()
	require.Eventually(t, func() bool { return b.TryAcquire(1<<30) == nil }, 2*time.Minute, time.Millisecond)
	refused(codes.Unavailable, "raise --memory-limit")
	b.Release(1 << 30)
	_, err := c.GetFlightInfo(ctx, request(t, &pb.CommandGetCatalogs{}))
	require.NoError(t, err)
	long := request(t, &pb.CommandStatementQuery{Query: strings.Repeat(" ", 1<<20)})
	_, err = c.GetFlightInfo(ctx, long)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "received message larger than max (1048659 vs. 1048576)")
}

// TestMessagesMustArrive: a call whose messages do not come ends.
func TestMessagesMustArrive(t *testing.T) {
	c, ctx, _ := open(t, func(s *Settings) { s.ReadTimeout = time.Millisecond })
	stream, err := c.DoPut(ctx)
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorContains(t, err, "did not arrive within 1ms (--http.read-timeout)")
}

// TestPatternsAreBounded: filters of names have a length.
func TestPatternsAreBounded(t *testing.T) {
	c, ctx, _ := open(t, func(*Settings) {})
	get := func(command proto.Message) error {
		stream, err := c.DoGet(ctx, &flight.Ticket{Ticket: request(t, command).Cmd})
		require.NoError(t, err)
		for err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	most, more := strings.Repeat("%", maxPattern), strings.Repeat("%", maxPattern+1)
	require.Equal(t, io.EOF, get(&pb.CommandGetDbSchemas{DbSchemaFilterPattern: &most}))
	for _, command := range []proto.Message{
		&pb.CommandGetDbSchemas{DbSchemaFilterPattern: &more}, &pb.CommandGetTables{DbSchemaFilterPattern: &more}, &pb.CommandGetTables{TableNameFilterPattern: &more},
	} {
		err := get(command)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, "a filter pattern has 1025 bytes; the limit is 1024")
	}
}

// TestTokens: a handshake has a token, or a password that is one.
func TestTokens(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer t": "t", "bearer  t ": "t", "Basic dTp0": "t", "basic dTp0OnQ=": "t:t", "Basic Onl5": "yy",
		"": "", "t": "", "Bearer": "", "Basic": "", "Basic dTp": "", "Basic dQ==": "", "Basic dTo=": "", "Digest t": "",
	} {
		require.Equal(t, want, tokenOf([]string{header}), header)
	}
	require.Empty(t, tokenOf(nil))
	require.Empty(t, tokenOf([]string{"Bearer t", "Bearer t"}))
}
