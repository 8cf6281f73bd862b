package resource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
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
	command, err := anypb.New(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte(`{"version":1,"query":"SELECT $1"}`)})
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

// flight calls a random method with random messages, mostly with the token.
func (c *client) flight(ctx context.Context, flag string) answer {
	if c.rng.IntN(10) == 0 {
		return c.deliver(ctx, "tcp", flag, append([]byte(c.pick("", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), c.spoilt(bytes.Repeat([]byte("\x00\x00\x04\x04\x00\x00\x00\x00\x01aaaa"), 1000))...))
	}
	conn, err := grpc.NewClient(c.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return answer{}
	}
	defer conn.Close()
	switch c.rng.IntN(10) {
	case 0:
	case 1:
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", c.pick("", "Bearer x", "Basic x"), "x-scope-orgid", c.pick("a", "a|b"))
	default:
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token, "x-scope-orgid", c.pick("anonymous", "anonymous", "tenant-0"))
	}
	service := pb.File_Flight_proto.Services().Get(0)
	method := service.Methods().Get(c.rng.IntN(service.Methods().Len()))
	messages := c.messages(method)
	c.sends(fmt.Sprintf("%s %.4000v", method.Name(), messages))
	begin := time.Now()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+string(service.FullName())+"/"+string(method.Name()))
	if err != nil {
		return answer{}
	}
	for _, m := range messages {
		if stream.SendMsg(m) != nil {
			break // the server has ended the call, as RecvMsg shows
		}
	}
	_ = stream.CloseSend() // it never fails
	for err == nil {
		err = stream.RecvMsg(&emptypb.Empty{})
	}
	a := answer{body: err.Error(), took: time.Since(begin)}
	switch code := status.Code(err); {
	case ctx.Err() != nil:
	case errors.Is(err, io.EOF):
		a.code = http.StatusOK
	case code == codes.Internal:
		a.code = http.StatusInternalServerError
		c.what += ": " + a.body
	default:
		a.code = -int(code)
	}
	return a
}

// messages returns what a client sends in a call: rows as Arrow's clients send them, or random
// messages of the method.
func (c *client) messages(method protoreflect.MethodDescriptor) []proto.Message {
	if method.Input().Name() == "Action" && c.rng.IntN(4) > 0 {
		name, body := c.command("Action")
		return []proto.Message{&pb.Action{Type: strings.TrimSuffix(strings.TrimPrefix(name, "Action"), "Request"), Body: body}}
	}
	if method.Input().Name() != "FlightData" || c.rng.IntN(4) == 0 {
		in := dynamicpb.NewMessage(method.Input())
		c.fill(in)
		return []proto.Message{in}
	}
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Timestamp_ms, arrow.BinaryTypes.StringView, arrow.FixedWidthTypes.Boolean,
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}), &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	}
	var fields []arrow.Field
	for i := range c.rng.IntN(4) {
		fields = append(fields, arrow.Field{Name: strings.Repeat("p", i), Type: types[c.rng.IntN(len(types))], Nullable: true})
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer rows.Release()
	for range c.rng.IntN(3) {
		for _, f := range rows.Fields() {
			if c.rng.IntN(2) == 0 {
				f.AppendNull()
			} else {
				f.AppendEmptyValue()
			}
		}
	}
	var out sent
	w := flight.NewRecordWriter(&out, ipc.WithSchema(rows.Schema()))
	_, command := c.command("Command")
	w.SetFlightDescriptor(&pb.FlightDescriptor{Type: pb.FlightDescriptor_CMD, Cmd: command})
	for range c.rng.IntN(3) {
		_ = w.Write(rows.NewRecordBatch()) // sent takes everything
	}
	_ = w.Close()
	for _, m := range out {
		data := m.(*pb.FlightData)
		data.DataHeader, data.DataBody = c.spoilt(data.DataHeader), c.spoilt(data.DataBody)
	}
	return out
}

// sent keeps the messages of an Arrow writer.
type sent []proto.Message

// Send implements flight.DataStreamWriter.
func (s *sent) Send(m *pb.FlightData) error {
	*s = append(*s, proto.Clone(m))
	return nil
}

// command returns a random message of Flight SQL with its name, which begins with prefix. The
// message may be damaged.
func (c *client) command(prefix string) (name string, text []byte) {
	all := pb.File_FlightSql_proto.Messages()
	for !strings.HasPrefix(name, prefix) || name == "" {
		name = string(all.Get(c.rng.IntN(all.Len())).Name())
	}
	command := dynamicpb.NewMessage(all.ByName(protoreflect.Name(name)))
	c.fill(command)
	wrapped, err := anypb.New(command)
	require.NoError(c.t, err)
	text, err = proto.Marshal(wrapped)
	require.NoError(c.t, err)
	if c.rng.IntN(4) == 0 {
		text = c.spoilt(text)
	}
	return name, text
}

// fill sets random fields of a message. Bytes are commands, statements and handles.
func (c *client) fill(m protoreflect.Message) {
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		f := all.Get(i)
		if f.IsMap() || f.IsList() || c.rng.IntN(4) == 0 {
			continue
		}
		var v any
		switch f.Kind() {
		case protoreflect.StringKind:
			v = strings.ToValidUTF8(c.pick(c.sql(3), c.word(), "%", strings.Repeat("%_", c.rng.IntN(2000)), "CreatePreparedStatement", "ClosePreparedStatement", "BeginTransaction", "CancelFlightInfo"), "")
		case protoreflect.BytesKind:
			text := c.sql(3)
			v = []byte(c.pick(text, c.word(), `{"version":1,"query":`+quoted(text)+`}`, `{"version":1,"query":"SELECT $1","params":[`+c.number()+`]}`, `{"version":1,"query":`+quoted(text)+`,"snapshot":{"version":1,"tenant":"anonymous"}}`))
			if m.Descriptor().ParentFile() == pb.File_Flight_proto && c.rng.IntN(4) > 0 {
				_, text := c.command(c.pick("Command", "Ticket", ""))
				v = text
			}
		case protoreflect.MessageKind:
			c.fill(m.Mutable(f).Message())
			continue
		case protoreflect.EnumKind:
			v = protoreflect.EnumNumber(c.rng.IntN(4))
		case protoreflect.BoolKind:
			v = c.rng.IntN(2) == 0
		case protoreflect.Int32Kind:
			v = int32(c.rng.Uint32())
		case protoreflect.Uint32Kind:
			v = c.rng.Uint32()
		case protoreflect.Int64Kind:
			v = int64(c.rng.Uint64())
		case protoreflect.DoubleKind:
			v = c.rng.NormFloat64()
		default:
			continue
		}
		m.Set(f, protoreflect.ValueOf(v))
	}
}
