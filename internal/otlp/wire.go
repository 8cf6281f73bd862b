package otlp

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message, in place.
type field struct {
	num  protowire.Number
	typ  protowire.Type
	val  uint64 // of a varint, fixed64 or fixed32 field
	data []byte // of a length-delimited field
}

// next reads the field at the beginning of b and returns the bytes after it.
func next(b []byte) (f field, rest []byte, err error) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, nil, malformed(n)
	}
	f.num, f.typ, b = num, typ, b[n:]
	switch typ {
	case protowire.BytesType:
		f.data, n = protowire.ConsumeBytes(b)
	case protowire.Fixed64Type:
		f.val, n = protowire.ConsumeFixed64(b)
	case protowire.VarintType:
		f.val, n = protowire.ConsumeVarint(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return f, nil, malformed(n)
	}
	return f, b[n:], nil
}

func malformed(n int) error { return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n)) }

// is returns an error unless the field has the wire type that a field of this message has.
func (f *field) is(typ protowire.Type, message string) error {
	if f.typ == typ {
		return nil
	}
	return fmt.Errorf("%w: %s: field %d has wire type %d", ErrMalformed, message, f.num, f.typ)
}

// message returns an error unless the field is length-delimited.
func (f *field) message(in string) error { return f.is(protowire.BytesType, in) }

// span gathers fields with one number: in place as long as they are adjacent.
type span struct {
	lo, hi int // in the message; empty: none yet
	joined []byte
}

// add adds the field that lies at [from, to) of the message.
func (s *span) add(msg []byte, from, to int) {
	switch {
	case s.lo == s.hi && s.joined == nil:
		s.lo, s.hi = from, to
	case s.hi == from && s.joined == nil:
		s.hi = to
	default:
		if s.joined == nil {
			s.joined = append(s.joined, msg[s.lo:s.hi]...)
		}
		s.joined = append(s.joined, msg[from:to]...)
	}
}

// of returns the fields, one after the other.
func (s *span) of(msg []byte) []byte {
	if s.joined != nil {
		return s.joined
	}
	return msg[s.lo:s.hi]
}

// join adds fields of another message. The first ones are not copied.
func (s *span) join(fields []byte) {
	if s.joined == nil {
		s.joined = fields[:len(fields):len(fields)]
		return
	}
	s.joined = append(s.joined, fields...)
}

// fieldsOf returns the fields of a message with a number, which are messages.
func fieldsOf(msg []byte, num protowire.Number, message string) ([]byte, error) {
	var s span
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return nil, err
		}
		if f.num == num {
			if err := f.message(message); err != nil {
				return nil, err
			}
			s.add(msg, len(msg)-len(b), len(msg)-len(rest))
		}
		b = rest
	}
	return s.of(msg), nil
}
