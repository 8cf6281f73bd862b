package encode

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
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
		return parquet.Leaf(parquet.BooleanType), func(a arrow.Array, row int) parquet.Value {
			return parquet.BooleanValue(a.(*array.Boolean).Value(row))
		}
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type, *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		small := func(get func(a arrow.Array, row int) int32) func(a arrow.Array, row int) parquet.Value {
			return func(a arrow.Array, row int) parquet.Value { return parquet.Int32Value(get(a, row)) }
		}
		switch t.(type) {
		case *arrow.Int8Type:
			return parquet.Int(8), small(func(a arrow.Array, row int) int32 { return int32(a.(*array.Int8).Value(row)) })
		case *arrow.Int16Type:
			return parquet.Int(16), small(func(a arrow.Array, row int) int32 { return int32(a.(*array.Int16).Value(row)) })
		case *arrow.Int32Type:
			return parquet.Int(32), small(func(a arrow.Array, row int) int32 { return a.(*array.Int32).Value(row) })
		case *arrow.Uint8Type:
			return parquet.Uint(8), small(func(a arrow.Array, row int) int32 { return int32(a.(*array.Uint8).Value(row)) })
		case *arrow.Uint16Type:
			return parquet.Uint(16), small(func(a arrow.Array, row int) int32 { return int32(a.(*array.Uint16).Value(row)) })
		case *arrow.Uint32Type:
			return parquet.Uint(32), small(func(a arrow.Array, row int) int32 { return int32(a.(*array.Uint32).Value(row)) })
		case *arrow.Uint64Type:
			return parquet.Uint(64), func(a arrow.Array, row int) parquet.Value {
				return parquet.Int64Value(int64(a.(*array.Uint64).Value(row)))
			}
		default:
			return parquet.Int(64), func(a arrow.Array, row int) parquet.Value { return parquet.Int64Value(a.(*array.Int64).Value(row)) }
		}
	case *arrow.Float32Type:
		return parquet.Leaf(parquet.FloatType), func(a arrow.Array, row int) parquet.Value {
			return parquet.FloatValue(a.(*array.Float32).Value(row))
		}
	case *arrow.Float64Type:
		return parquet.Leaf(parquet.DoubleType), func(a arrow.Array, row int) parquet.Value {
			return parquet.DoubleValue(a.(*array.Float64).Value(row))
		}
	case *arrow.Date32Type:
		return parquet.Date(), func(a arrow.Array, row int) parquet.Value {
			return parquet.Int32Value(int32(a.(*array.Date32).Value(row)))
		}
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
		return parquet.TimestampAdjusted(unit, t.TimeZone != ""), func(a arrow.Array, row int) parquet.Value {
			return parquet.Int64Value(int64(a.(*array.Timestamp).Value(row)) * times)
		}
	case *arrow.Decimal128Type:
		return parquet.Decimal(int(t.Scale), int(t.Precision), parquet.FixedLenByteArrayType(16)), decimal
	case *arrow.BinaryType:
		return parquet.Leaf(parquet.ByteArrayType), func(a arrow.Array, row int) parquet.Value {
			return parquet.ByteArrayValue(a.(*array.Binary).Value(row))
		}
	default:
		return parquet.String(), func(a arrow.Array, row int) parquet.Value {
			if s, ok := a.(*array.String); ok {
				text := s.Value(row) // of the batch, which stays until the value is written
				return parquet.ByteArrayValue(unsafe.Slice(unsafe.StringData(text), len(text)))
			}
			return parquet.ByteArrayValue([]byte(plain(value(nil, a, row, nil))))
		}
	}
}

// decimal returns a decimal as Parquet has it: big-endian two's complement.
func decimal(a arrow.Array, row int) parquet.Value {
	v := a.(*array.Decimal128).Value(row)
	b := make([]byte, 16)
	high, low := uint64(v.HighBits()), v.LowBits()
	for i := range 8 {
		b[i], b[8+i] = byte(high>>(56-8*i)&math.MaxUint8), byte(low>>(56-8*i)&math.MaxUint8)
	}
	return parquet.FixedLenByteArrayValue(b)
}
