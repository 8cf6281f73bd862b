package remotewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Wire types of the protobuf encoding (protobuf.dev, "Encoding").
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var (
	// errTruncated reports a protobuf message that ends within a field.
	errTruncated = errors.New("truncated protobuf message")
	// errOverflow reports a number that does not fit.
	errOverflow = errors.New("protobuf varint overflows 64 bits")
)

// errVarint is why uvarint returned an n that is not positive.
func errVarint(n int) error {
	if n < 0 {
		return errOverflow
	}
	return errTruncated
}

// field is one field of a message, in place.
type field struct {
	num  int32
	wire int
	val  uint64 // of a varint or fixed field
	data []byte // of a length-delimited field
}

// fields walks over the fields of a message.
type fields struct {
	field        // the one that next has read
	rest  []byte // what follows it
	err   error  // why the walk ended before the end of the message
}

// next reads the next field. It returns false at the end of the message and after an error.
func (m *fields) next() bool {
	if len(m.rest) == 0 {
		return false
	}
	m.err = m.read()
	return m.err == nil
}

// read reads the field at the beginning of rest.
func (m *fields) read() error {
	tag, n := uvarint(m.rest)
	if n <= 0 {
		return errVarint(n)
	}
	b := m.rest[n:]
	m.num, m.wire, m.data = int32(tag>>3), int(tag&7), nil
	if m.num <= 0 || tag > math.MaxUint32 {
		return fmt.Errorf("protobuf field tag %d", tag)
	}
	switch m.wire {
	case wireVarint:
		if m.val, n = uvarint(b); n <= 0 {
			return errVarint(n)
		}
	case wireFixed64:
		if n = 8; len(b) < n {
			return errTruncated
		}
		m.val = binary.LittleEndian.Uint64(b)
	case wireBytes:
		size, head := uvarint(b)
		if head <= 0 {
			return errVarint(head)
		}
		if size > uint64(len(b)-head) {
			return errTruncated
		}
		n = head + int(size)
		m.data = b[head:n]
	case wireFixed32:
		if n = 4; len(b) < n {
			return errTruncated
		}
		m.val = uint64(binary.LittleEndian.Uint32(b))
	default:
		return fmt.Errorf("protobuf wire type %d", m.wire)
	}
	m.rest = b[n:]
	return nil
}

// uvarint is binary.Uvarint with its one-byte case inlined.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// errWire reports a known field with a wire type that is not its own.
func errWire(message string, f field) error {
	return fmt.Errorf("%s: field %d has wire type %d", message, f.num, f.wire)
}

// shortField returns the lengths of the head and of the data of a length-delimited field with a
// number below 16 and less than 16 kB at the beginning of b. head is 0 if there is none.
func shortField(b []byte, num byte) (head, n int) {
	if len(b) < 3 || b[0] != num<<3|wireBytes {
		return 0, 0
	}
	head, n = 2, int(b[1])
	if n >= 0x80 {
		if b[2] >= 0x80 {
			return 0, 0
		}
		head, n = 3, n&0x7f|int(b[2])<<7
	}
	if n > len(b)-head {
		return 0, 0
	}
	return head, n
}

// lastVarint returns the varint of the last n bytes of b, of which there are at least 8. ok is false
// if it has more than 8 bytes or these are something else.
func lastVarint(b []byte, n int) (v uint64, ok bool) {
	if n < 1 || n > 8 {
		return 0, false
	}
	const more = 0x8080808080808080 // the bits of bytes that another one follows
	unused := 8 * (8 - n)
	v = binary.LittleEndian.Uint64(b[len(b)-8:]) >> unused
	if v&more != more>>8>>unused {
		return 0, false
	}
	v &^= more
	v = v&0x007f007f007f007f | v>>1&0x3f803f803f803f80
	v = v&0x00003fff00003fff | v>>2&0x0fffc0000fffc000
	return v&0x000000000fffffff | v>>4&0x00fffffff0000000, true
}
