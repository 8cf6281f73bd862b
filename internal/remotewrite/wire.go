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
