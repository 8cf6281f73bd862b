package body

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// The memory (bytes) of a body grows with what has arrived, whatever its header announces: from
// class to class whenever it is full, and beyond the last class by the factor growth.
var classes = [...]int64{64 << 10, 256 << 10, 1 << 20}

const growth = 4

// pools keep buffers whose capacity is exactly that of their class, so that the charge of a request
// is what it holds.
var pools [len(classes)]sync.Pool

// nextSize is the capacity for a body of more than n bytes so far, and of most in the end.
func nextSize(n, most int64) int64 {
	for _, size := range classes {
		if n < size {
			return size
		}
	}
	return min(growth*n, most)
}

func memoryOf(size int64) []byte {
	for i, class := range classes {
		if size == class {
			if b, ok := pools[i].Get().(*[]byte); ok {
				return (*b)[:0]
			}
		}
	}
	return make([]byte, 0, size)
}

// recycle gives memory of memoryOf back for reuse.
func recycle(b []byte) {
	for i, class := range classes {
		if int64(cap(b)) == class {
			pools[i].Put(&b)
		}
	}
}

// receive reads a body of length bytes (-1: unknown), which begins with head. grow charges the
// request for more bytes. The caller gives the body to recycle, also after an error.
func (r *Reader) receive(p *Paced, head []byte, length int64, grow func(int64) error) (b []byte, err error) {
	most := length
	if most < 0 {
		most = r.limits.MaxRequestBytes + 1
	}
	for first := true; first || int64(len(b)) < most; first = false {
		if len(b) == cap(b) {
			size := nextSize(int64(len(b)), most)
			if err := p.pause(func() error { return grow(size - int64(cap(b))) }); err != nil {
				return b, err
			}
			next := append(append(memoryOf(size), b...), head...)
			recycle(b)
			b, head = next, nil
			continue
		}
		n, err := p.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF) && (length < 0 || int64(len(b)) == length):
			most = int64(len(b))
		case errors.Is(err, io.EOF):
			return b, fmt.Errorf("%w: read: %w", ErrInvalid, io.ErrUnexpectedEOF)
		case err != nil:
			return b, fmt.Errorf("%w: read: %w", ErrInvalid, err)
		}
	}
	if int64(len(b)) > r.limits.MaxRequestBytes {
		return b, &TooLarge{Limit: "max-request-bytes", Max: r.limits.MaxRequestBytes}
	}
	return b, nil
}
