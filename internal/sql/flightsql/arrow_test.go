package flightsql

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// sent collects the messages of a writer.
type sent struct{ all []*flight.FlightData }

func (s *sent) Send(d *flight.FlightData) error {
	s.all = append(s.all, proto.Clone(d).(*flight.FlightData))
	return nil
}

// parameters are the messages of the rows of a column, which JSON gives.
func parameters(t *testing.T, of arrow.DataType, rows string, options ...ipc.Option) []*flight.FlightData {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "1", Type: of, Nullable: true}}, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	require.NoError(t, err)
	s := &sent{}
	w := flight.NewRecordWriter(s, append(options, ipc.WithSchema(schema))...)
	require.NoError(t, w.Write(b))
	require.NoError(t, w.Close())
	return s.all
}

// hostileSchema is a schema of n fields, which are all the same one, with a name, and with itself
// as its child if it is nested.
func hostileSchema(n int, name string, nested bool) *flight.FlightData {
	b := flatbuffers.NewBuilder(1024)
	text := b.CreateString(name)
	b.StartObject(0)
	kind := b.EndObject()
	var children, field flatbuffers.UOffsetT
	if nested {
		b.StartVector(4, 1, 4)
		b.PrependUOffsetT(kind)
		children = b.EndVector(1)
	}
	b.StartObject(7)
	b.PrependUOffsetTSlot(0, text, 0)
	b.PrependUint8Slot(2, map[bool]byte{false: 1, true: 12}[nested], 0)
	b.PrependUOffsetTSlot(3, kind, 0)
	b.PrependUOffsetTSlot(5, children, 0)
	field = b.EndObject()
	b.StartVector(4, n, 4)
	for range n {
		b.PrependUOffsetT(field)
	}
	fields := b.EndVector(n)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, fields, 0)
	schema := b.EndObject()
	b.StartObject(5)
	b.PrependInt16Slot(0, 4, 0)
	b.PrependUint8Slot(1, kindSchema, 0)
	b.PrependUOffsetTSlot(2, schema, 0)
	b.Finish(b.EndObject())
	out := b.FinishedBytes()
	if nested {
		at := len(out) - int(children) + 4
		binary.LittleEndian.PutUint32(out[at:], uint32(len(out)-int(field)-at)) // backwards
	}
	return &flight.FlightData{DataHeader: out}
}

// TestHostileMessages: what Arrow's reader would believe is refused, and the server goes on.
func TestHostileMessages(t *testing.T) {
	c, ctx, _ := open(t, func(*Settings) {})
	of := request(t, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte(`{"version":1,"query":"SELECT $1"}`)})
	put := func(all ...*flight.FlightData) (*flight.PutResult, error) {
		stream, err := c.DoPut(ctx)
		require.NoError(t, err)
		for i, d := range all {
			if i == 0 && d.DataHeader != nil {
				d.FlightDescriptor = of
			}
			_ = stream.Send(d) // an error comes with Recv
		}
		require.NoError(t, stream.CloseSend())
		return stream.Recv()
	}
	text := func() []*flight.FlightData {
		return parameters(t, arrow.BinaryTypes.String, `[{"1":"hello world, a text"}]`)
	}
	// changed replaces what occurs once in the header or body of the second message.
	changed := func(all []*flight.FlightData, from, to []int64) []*flight.FlightData {
		raw := func(v []int64) []byte {
			b, err := binary.Append(nil, binary.LittleEndian, v)
			require.NoError(t, err)
			return b
		}
		d, n := all[1], 0
		for _, b := range []*[]byte{&d.DataHeader, &d.DataBody} {
			n += bytes.Count(*b, raw(from))
			*b = bytes.ReplaceAll(*b, raw(from), raw(to))
		}
		require.Positive(t, n)
		return all
	}
	pair := func(lo, hi int64) []int64 { return []int64{hi<<32 | lo} }
	for _, tc := range []struct {
		name string
		all  []*flight.FlightData
		want string
	}{
		{"nothing", []*flight.FlightData{}, "EOF"},
		{"an empty message", []*flight.FlightData{{}}, "the first message has no descriptor"},
		{"no descriptor", []*flight.FlightData{{AppMetadata: []byte("abc")}}, "the first message has no descriptor"},
		{"no header", []*flight.FlightData{text()[0], {}}, "damaged"},
		{"no message", []*flight.FlightData{{DataHeader: []byte("no message")}}, "damaged"},
		{"offsets that run back", changed(text(), pair(0, 19), pair(15, 3)), "damaged"},
		{"offsets beyond the text", changed(text(), pair(0, 19), pair(0, 1<<30)), "damaged"},
		{"a buffer beyond the body", changed(text(), []int64{8, 19}, []int64{8, 1 << 40}), "damaged"},
		{"a buffer before the body", changed(text(), []int64{8, 19}, []int64{-8, 19}), "damaged"},
		{"compressed", parameters(t, arrow.BinaryTypes.String, `[{"1":"`+strings.Repeat("x", 100_000)+`"}]`, ipc.WithZstd()), "compressed data is not supported"},
		{"a nested type", parameters(t, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[{"1":[1]}]`), "parameter 1: its type is not supported"},
		{"a dictionary", parameters(t, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `[]`)[:1], "parameter 1: its type is not supported"},
		{"a field that is its own child", []*flight.FlightData{hostileSchema(1, "", true)}, "parameter 1: its type is not supported"},
		{"a name that many fields share", []*flight.FlightData{hostileSchema(50_000, strings.Repeat("x", 100_000), false)}, "damaged"},
		{"two rows", parameters(t, arrow.PrimitiveTypes.Int64, `[{"1":1},{"1":2}]`), "more than one row"},
		{"a record batch first", text()[1:], "read the parameters"},
	} {
		_, err := put(tc.all...)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", tc.name, err)
		require.ErrorContains(t, err, tc.want, tc.name)
	}
	for _, of := range []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64, arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
	} {
		_, err := put(parameters(t, of, `[{"1":null}]`)...)
		require.NoError(t, err, of)
	}
	for text, of := range map[string]arrow.DataType{`"a longer text than a view holds"`: arrow.BinaryTypes.StringView, `"x"`: arrow.BinaryTypes.LargeString, `7`: arrow.PrimitiveTypes.Int32} {
		out, err := put(parameters(t, of, `[{"1":`+text+`}]`)...)
		require.NoError(t, err, of)
		require.Contains(t, string(out.AppMetadata), `"params":[`+text+`]`)
	}
}

// FuzzMessages: no message makes Arrow's reader panic beyond its own recovery, or take much memory.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("no message"), []byte{})
	f.Add(hostileSchema(2, "x", false).DataHeader, []byte{})
	f.Fuzz(func(_ *testing.T, header, body []byte) {
		_ = check(&flight.FlightData{DataHeader: header, DataBody: body}, false) // it returns
	})
}
