package message

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// reader reads the fields of a message's columns. After an error, which it keeps, it reads zeros.
type reader struct {
	b   []byte
	err error
}

var (
	errShort  = errors.New("it ends within a field")
	errNumber = errors.New("a number is too large or longer than it need be")
)

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.b = nil
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	return r.longUvarint()
}

func (r *reader) longUvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	switch {
	case n == 0:
		r.fail("%w", errShort)
		return 0
	case n < 0 || r.b[n-1] == 0:
		r.fail("%w", errNumber)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// varint reads a signed number, zigzag.
func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// count reads how many things of at least so many bytes follow, which must be there.
func (r *reader) count(bytes int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/bytes) {
		r.fail("%d things of %d bytes in %d", n, bytes, len(r.b))
		return 0
	}
	return int(n)
}

// below reads an index into n things.
func (r *reader) below(n int) int {
	v := r.uvarint()
	if v >= uint64(n) {
		r.fail("number %d of %d", v, n)
		return 0
	}
	return int(v)
}

// bytes reads a byte string, in place.
func (r *reader) bytes() []byte {
	n := r.count(1)
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// text reads a string, in place.
func (r *reader) text() string { return remotewrite.View(r.bytes()) }

func (r *reader) fixed64() uint64 {
	if len(r.b) < 8 {
		r.fail("%w", errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}
