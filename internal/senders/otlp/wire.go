package otlp

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// field is one field of a message, in place.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	val  uint64 // of a varint, fixed64 or fixed32 field
	data []byte // of a length-delimited field
}

// reader reads the fields of a message one after another. After the first error, which it keeps,
// there are no more.
type reader struct {
	field
	message string // its name
	msg     []byte
	lo, hi  int // of the field in msg, with its tag
	err     error
}

func read(msg []byte, message string) reader { return reader{msg: msg, message: message} }

// each calls f with every field of the number, which is a message of its own, until f fails.
func each(msg []byte, num protowire.Number, message string, f func([]byte) error) error {
	r := read(msg, message)
	for r.next() {
		if r.num == num && r.is(protowire.BytesType) {
			r.err = f(r.data)
		}
	}
	return r.err
}

// next reads a field and reports whether there was one.
func (r *reader) next() bool {
	b := r.msg[r.hi:]
	if len(b) == 0 || r.err != nil {
		return false
	}
	num, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return r.malformed(tag)
	}
	r.field = field{num: num, typ: typ}
	n := 0
	switch b = b[tag:]; typ {
	case protowire.BytesType:
		r.data, n = protowire.ConsumeBytes(b)
	case protowire.Fixed64Type:
		r.val, n = protowire.ConsumeFixed64(b)
	case protowire.VarintType:
		r.val, n = protowire.ConsumeVarint(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return r.malformed(n)
	}
	r.lo, r.hi = r.hi, r.hi+tag+n
	return true
}

func (r *reader) malformed(n int) bool {
	r.err = fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
	return false
}

// is reports whether the field has the wire type that a field of this message has.
func (r *reader) is(typ protowire.Type) bool {
	if r.typ == typ {
		return true
	}
	r.err = fmt.Errorf("%w: %s: field %d has wire type %d", ErrMalformed, r.message, r.num, r.typ)
	return false
}

func (r *reader) bytes() []byte {
	r.is(protowire.BytesType)
	return r.data
}

func (r *reader) fixed64() uint64 {
	r.is(protowire.Fixed64Type)
	return r.val
}

func (r *reader) double() float64 { return math.Float64frombits(r.fixed64()) }

func (r *reader) varint() uint64 {
	r.is(protowire.VarintType)
	return r.val
}

func (r *reader) sint32() int32 { return int32(protowire.DecodeZigZag(r.varint() & math.MaxUint32)) }

// values calls add with the values of a repeated field of varints or fixed64, packed or not.
func (r *reader) values(typ protowire.Type, add func(uint64)) {
	if r.typ == typ {
		add(r.val)
		return
	}
	for b := r.bytes(); len(b) > 0; {
		v, n := uint64(0), 0
		if typ == protowire.VarintType {
			v, n = protowire.ConsumeVarint(b)
		} else {
			v, n = protowire.ConsumeFixed64(b)
		}
		if n < 0 {
			r.malformed(n)
			return
		}
		add(v)
		b = b[n:]
	}
}

// span gathers the fields with one number, which are messages: in place as long as they are
// adjacent.
type span struct {
	bytes []byte
	end   int // of bytes in the message; -1: bytes are a copy
}

// add adds the field at which the reader is.
func (s *span) add(r *reader) {
	switch raw := r.msg[r.lo:r.hi]; {
	case !r.is(protowire.BytesType):
	case s.bytes == nil:
		s.bytes, s.end = raw, r.hi
	case s.end == r.lo:
		s.bytes, s.end = s.bytes[:len(s.bytes)+len(raw)], r.hi
	default:
		s.join(raw)
	}
}

// join adds bytes of another place. The first ones are not copied.
func (s *span) join(more []byte) {
	switch {
	case s.bytes == nil:
		s.bytes = more
		return
	case s.end >= 0:
		s.bytes, s.end = slices.Clip(s.bytes), -1
	}
	s.bytes = append(s.bytes, more...)
}

// The memory (bytes) that OpenTelemetry's package needs at most for a part of a JSON message.
const (
	costObject = 320 // the largest struct, of a data point or metric
	costValue  = 32  // an element of an array, or a number
)

// FromJSON turns a message in OTLP's JSON form into its protobuf form. It takes the memory for both
// from the room. Errors are ErrMalformed and the room's.
func FromJSON(msg []byte, room *remotewrite.Room) ([]byte, error) {
	if !json.Valid(msg) { // which also bounds how deep values are nested
		return nil, fmt.Errorf("%w: invalid JSON", ErrMalformed)
	}
	objects, values, depth := measure(msg)
	if depth > maxNesting*4 {
		return nil, fmt.Errorf("%w: JSON with values %d deep in one another, the limit is %d", ErrMalformed, depth, maxNesting*4)
	}
	need := costObject*objects + costValue*values + int64(len(msg))
	if !room.Take(need) {
		if err := room.Reserve(0); err != nil {
			return nil, err
		}
	}
	metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(msg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	out, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return out, nil
}

// measure counts the objects and values of valid JSON, and how deep they are in one another.
func measure(msg []byte) (objects, values int64, deepest int) {
	depth, text := 0, false
	for i := 0; i < len(msg); i++ {
		switch c := msg[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
			if c == '{' {
				objects++
			}
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	return objects, values, deepest
}
