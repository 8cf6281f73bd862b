package flightsql

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// streamed registers every method as a stream. gRPC reads the message of a unary method before it
// calls an interceptor, but nothing of a stream.
type streamed struct{ *grpc.Server }

// RegisterService implements grpc.ServiceRegistrar.
func (s streamed) RegisterService(service *grpc.ServiceDesc, srv any) {
	d := grpc.ServiceDesc{ServiceName: service.ServiceName, HandlerType: service.HandlerType, Metadata: service.Metadata, Streams: service.Streams[:len(service.Streams):len(service.Streams)]}
	for _, m := range service.Methods {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: func(srv any, stream grpc.ServerStream) error {
			out, err := m.Handler(srv, stream.Context(), stream.RecvMsg, nil)
			if err != nil {
				return err
			}
			return stream.SendMsg(out)
		}})
	}
	s.Server.RegisterService(&d, srv)
}

// known makes a connection known to its calls.
type known struct {
	credentials.TransportCredentials
	tls *tls.Config // nil: without TLS
}

// ServerHandshake implements credentials.TransportCredentials.
func (k known) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if k.tls == nil {
		return c, &connection{conn: c}, nil
	}
	secure := tls.Server(c, k.tls)
	if err := secure.Handshake(); err != nil {
		return nil, nil, errors.Join(err, secure.Close())
	}
	return secure, &connection{conn: c}, nil
}

// connection is a connection with the number of its calls.
type connection struct {
	conn  net.Conn
	mu    sync.Mutex
	calls int
}

// AuthType implements credentials.AuthInfo.
func (*connection) AuthType() string { return "none" }

// count adds to the number of calls.
func (c *connection) count(in Connections, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := http.StateActive
	if c.calls += n; c.calls == 0 {
		state = http.StateIdle
	}
	in.Note(c.conn, state)
}

// call is the interceptor of all calls. A call may send messages only after its token was checked,
// and while it holds memory for the largest message. A panic becomes an error of the call.
func (s *service) call(srv any, stream grpc.ServerStream, about *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.set.Logger.Error("a call of Flight SQL panicked", "method", about.FullMethod, "panic", p, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "internal error, see the server's log")
		}
		s.calls.WithLabelValues(status.Code(err).String()).Inc()
	}()
	if about.FullMethod == handshake {
		// The password is the token. Each later call is checked by itself.
		md, _ := metadata.FromIncomingContext(stream.Context())
		token := tokenOf(md.Get("authorization"))
		if token == "" {
			return status.Error(codes.Unauthenticated, "the handshake has no password: give the token as the password, or send the header authorization: Bearer TOKEN")
		}
		return stream.SendHeader(metadata.Pairs("authorization", "Bearer "+token))
	}
	ctx := stream.Context()
	answer, err := s.do(ctx, http.MethodGet, "/api/v1/status/buildinfo", nil)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return failure(err)
	}
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	default:
		return status.Errorf(codes.ResourceExhausted, "too many calls at once: the limit is %d; retry later, or raise --flight.max-calls", s.set.MaxCalls)
	}
	size := int64(s.set.MaxMessageBytes)
	if err := s.set.Memory.TryAcquire(size); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	defer s.set.Memory.Release(size)
	if from, ok := peer.FromContext(ctx); ok {
		c := from.AuthInfo.(*connection)
		c.count(s.set.Connections, 1)
		defer c.count(s.set.Connections, -1)
	}
	ctx, cancel := context.WithTimeout(ctx, s.set.ReadTimeout)
	defer cancel()
	m := &messages{ServerStream: stream, set: &s.set, arriving: ctx}
	if err := next(srv, m); m.refused == nil {
		return err
	}
	return m.refused
}

// handshake is the call with which clients exchange a user and a password for a token.
const handshake = "/arrow.flight.protocol.FlightService/Handshake"

// tokenOf returns the token of a Bearer header, or the password of a Basic one; "" if there is
// none.
func tokenOf(values []string) string {
	if len(values) != 1 {
		return ""
	}
	r := http.Request{Header: http.Header{"Authorization": values}}
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	if scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " "); strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

// messages are those that a client sends in a call.
type messages struct {
	grpc.ServerStream
	set      *Settings
	arriving context.Context // until when they may arrive
	later    bool            // one has arrived
	refused  error           // is the error of the call
}

// RecvMsg implements grpc.ServerStream.
func (m *messages) RecvMsg(out any) error {
	read := make(chan error, 1)
	go func() { read <- m.ServerStream.RecvMsg(out) }() // ends with the call
	select {
	case err := <-read:
		data, ok := out.(*flight.FlightData)
		if !ok || err != nil {
			return err
		}
		if err := check(data, !m.later); err != nil {
			m.refused = status.Error(codes.InvalidArgument, err.Error())
		}
		m.later = true
	case <-m.arriving.Done():
		if m.refused = failure(m.arriving.Err()); status.Code(m.refused) == codes.DeadlineExceeded {
			m.refused = status.Errorf(codes.DeadlineExceeded, "the messages of the call did not arrive within %s (--http.read-timeout)", m.set.ReadTimeout)
		}
	}
	return m.refused
}
