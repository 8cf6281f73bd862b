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

// next reads the field at the beginning of b and returns the bytes after it.
func next(b []byte) (f field, rest []byte, err error) {
	tag, n := uvarint(b)
	if n <= 0 {
		return f, nil, errVarint(n)
	}
	b = b[n:]
	f.num, f.wire = int32(tag>>3), int(tag&7)
	if f.num <= 0 || tag > math.MaxUint32 {
		return f, nil, fmt.Errorf("protobuf field tag %d", tag)
	}
	switch f.wire {
	case wireVarint:
		if f.val, n = uvarint(b); n <= 0 {
			return f, nil, errVarint(n)
		}
		return f, b[n:], nil
	case wireFixed64:
		if len(b) < 8 {
			return f, nil, errTruncated
		}
		f.val = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case wireBytes:
		l, n := uvarint(b)
		if n <= 0 {
			return f, nil, errVarint(n)
		}
		if l > uint64(len(b)-n) {
			return f, nil, errTruncated
		}
		f.data = b[n : n+int(l)]
		return f, b[n+int(l):], nil
	case wireFixed32:
		if len(b) < 4 {
			return f, nil, errTruncated
		}
		f.val = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], nil
	}
	return f, nil, fmt.Errorf("protobuf wire type %d", f.wire)
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
