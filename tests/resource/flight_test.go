package resource

import (
	"net"
	"sync/atomic"
	"testing"

	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestHostileFlight: calls that send a large message and no end, and connections that are silent,
// take neither the memory nor the places of others.
func TestHostileFlight(t *testing.T) {
	s := start(t)
	for range 600 {
		conn, err := net.Dial("tcp", s.rpc)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		s.dial("GET /api/v1/query HTTP/1.1\r\nX: ")
	}
	command, err := anypb.New(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte(`{"query":"SELECT $1"}`)})
	require.NoError(t, err)
	text, err := proto.Marshal(command)
	require.NoError(t, err)
	message := &pb.FlightData{FlightDescriptor: &pb.FlightDescriptor{Cmd: text}, AppMetadata: make([]byte, 1_000_000)}
	var refused atomic.Int64
	for range 10 {
		conn, err := grpc.NewClient(s.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		for range 30 {
			stream, err := pb.NewFlightServiceClient(conn).DoPut(t.Context())
			require.NoError(t, err)
			_ = stream.Send(message) // the call may have been refused
			go func() {
				if _, err := stream.Recv(); status.Code(err) == codes.ResourceExhausted {
					refused.Add(1)
				}
			}()
		}
	}
	s.await("all calls but 128 are refused", func() bool { return refused.Load() >= 300-128 })
	s.recovers()
	require.Less(t, s.most.Load(), int64(memoryLimit/2))
}
