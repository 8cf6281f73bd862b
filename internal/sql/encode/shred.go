package encode

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/parquet-go/parquet-go"
)

// shredder turns the values of one type into Parquet's columns with their levels. A value is
// optional: its definition level is one more than its parent's if it is not NULL. See
// https://parquet.apache.org/docs/file-format/nestedencoding/.
type shredder struct {
	node     parquet.Node // without the option
	first    int          // its first leaf
	end      int          // its last leaf + 1
	repeated int          // the repetition level of elements after the first one
	children []*shredder  // of a struct; of a list its element; of a map its key and value
	value    func(a arrow.Array, row int) parquet.Value
}

// shred returns the shredder of a type whose leaves are numbered from *leaves on, below so many
// repeated nodes.
func shred(t arrow.DataType, leaves *int, repeated int) *shredder {
	s := &shredder{first: *leaves, repeated: repeated + 1}
	switch t := t.(type) {
	case *arrow.StructType:
		g := ordered{Group: parquet.Group{}}
		for _, f := range t.Fields() {
			c := shred(f.Type, leaves, repeated)
			s.children = append(s.children, c)
			g.Group[f.Name], g.names = parquet.Optional(c.node), append(g.names, f.Name)
		}
		s.node = g
	case *arrow.MapType:
		key, item := shred(t.KeyType(), leaves, repeated+1), shred(t.ItemType(), leaves, repeated+1)
		s.children, s.node = []*shredder{key, item}, parquet.Map(parquet.Required(key.node), parquet.Optional(item.node))
	case arrow.ListLikeType:
		c := shred(t.Elem(), leaves, repeated+1)
		s.children, s.node = []*shredder{c}, parquet.List(parquet.Optional(c.node))
	default:
		s.node, s.value = leaf(t)
		*leaves++
	}
	s.end = *leaves
	return s
}

// put appends a row's value to its leaves, at a repetition level, below a definition level.
func (s *shredder) put(out [][]parquet.Value, a arrow.Array, row, rep, def int) {
	if a.IsNull(row) {
		s.null(out, rep, def)
		return
	}
	s.present(out, a, row, rep, def+1)
}

// null appends that there is nothing beyond a definition level.
func (s *shredder) null(out [][]parquet.Value, rep, def int) {
	for i := s.first; i < s.end; i++ {
		out[i] = append(out[i], parquet.NullValue().Level(rep, def, i))
	}
}

// present appends a value that is not NULL; def is its own definition level.
func (s *shredder) present(out [][]parquet.Value, a arrow.Array, row, rep, def int) {
	switch a := a.(type) {
	case *array.Struct:
		for i, c := range s.children {
			c.put(out, a.Field(i), row, rep, def)
		}
	case *array.Map:
		from, end := a.ValueOffsets(row)
		s.elements(out, from, end, rep, def, func(i, rep int) {
			s.children[0].present(out, a.Keys(), i, rep, def+1) // keys are required
			s.children[1].put(out, a.Items(), i, rep, def+1)
		})
	case array.ListLike:
		from, end := a.ValueOffsets(row)
		s.elements(out, from, end, rep, def, func(i, rep int) { s.children[0].put(out, a.ListValues(), i, rep, def+1) })
	default:
		out[s.first] = append(out[s.first], s.value(a, row).Level(rep, def, s.first))
	}
}

// elements appends the elements [from, end) of a list.
func (s *shredder) elements(out [][]parquet.Value, from, end int64, rep, def int, put func(i, rep int)) {
	if from == end {
		s.null(out, rep, def)
		return
	}
	for i := from; i < end; i++ {
		put(int(i), rep)
		rep = s.repeated
	}
}

// leaf returns the node of a type without parts, and its values. Types that Parquet does not have
// are texts.
func leaf(t arrow.DataType) (parquet.Node, func(a arrow.Array, row int) parquet.Value) {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return parquet.Leaf(parquet.BooleanType), values[*array.Boolean](parquet.BooleanValue)
	case *arrow.Int8Type:
		return parquet.Int(8), values[*array.Int8](int32Value[int8])
	case *arrow.Int16Type:
		return parquet.Int(16), values[*array.Int16](int32Value[int16])
	case *arrow.Int32Type:
		return parquet.Int(32), values[*array.Int32](parquet.Int32Value)
	case *arrow.Int64Type:
		return parquet.Int(64), values[*array.Int64](parquet.Int64Value)
	case *arrow.Uint8Type:
		return parquet.Uint(8), values[*array.Uint8](int32Value[uint8])
	case *arrow.Uint16Type:
		return parquet.Uint(16), values[*array.Uint16](int32Value[uint16])
	case *arrow.Uint32Type:
		return parquet.Uint(32), values[*array.Uint32](int32Value[uint32])
	case *arrow.Uint64Type:
		return parquet.Uint(64), values[*array.Uint64](func(v uint64) parquet.Value { return parquet.Int64Value(int64(v)) })
	case *arrow.Float32Type:
		return parquet.Leaf(parquet.FloatType), values[*array.Float32](parquet.FloatValue)
	case *arrow.Float64Type:
		return parquet.Leaf(parquet.DoubleType), values[*array.Float64](parquet.DoubleValue)
	case *arrow.Date32Type:
		return parquet.Date(), values[*array.Date32](int32Value[arrow.Date32])
	case *arrow.TimestampType:
		unit, times := parquet.Microsecond, int64(1)
		switch t.Unit {
		case arrow.Second:
			unit, times = parquet.Millisecond, 1000
		case arrow.Millisecond:
			unit = parquet.Millisecond
		case arrow.Nanosecond:
			unit = parquet.Nanosecond
		}
		return parquet.TimestampAdjusted(unit, t.TimeZone != ""), values[*array.Timestamp](func(v arrow.Timestamp) parquet.Value {
			return parquet.Int64Value(int64(v) * times)
		})
	case *arrow.Decimal128Type:
		return parquet.Decimal(int(t.Scale), int(t.Precision), parquet.FixedLenByteArrayType(16)), values[*array.Decimal128](decimal)
	case *arrow.BinaryType:
		return parquet.Leaf(parquet.ByteArrayType), values[*array.Binary](parquet.ByteArrayValue)
	case *arrow.StringType:
		return parquet.String(), values[*array.String](func(text string) parquet.Value { // of the batch, which stays until the value is written
			return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(text), len(text)))
		})
	default:
		return parquet.String(), func(a arrow.Array, row int) parquet.Value {
			return parquet.ByteArrayValue([]byte(plain(value(nil, a, row, nil))))
		}
	}
}

// values returns the values of arrays of type A, whose elements convert turns into Parquet's
// values.
func values[A interface{ Value(row int) T }, T any](convert func(T) parquet.Value) func(a arrow.Array, row int) parquet.Value {
	return func(a arrow.Array, row int) parquet.Value { return convert(a.(A).Value(row)) }
}

func int32Value[T int8 | int16 | uint8 | uint16 | uint32 | arrow.Date32](v T) parquet.Value {
	return parquet.Int32Value(int32(v))
}

// decimal returns a decimal as Parquet has it: big-endian two's complement.
func decimal(v decimal128.Num) parquet.Value {
	b := binary.BigEndian.AppendUint64(nil, uint64(v.HighBits()))
	return parquet.FixedLenByteArrayValue(binary.BigEndian.AppendUint64(b, v.LowBits()))
}
