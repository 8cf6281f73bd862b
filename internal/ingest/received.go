package ingest

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// The memory of a body grows with what has arrived, whatever its header announces: from class to
// class whenever it is full, and beyond the last class by bodyGrowth.
var bodyClasses = [...]int64{64 << 10, 256 << 10, 1 << 20}

const bodyGrowth = 4

// bodyPools keep buffers whose capacity is exactly that of their class, so a request is charged
// what it holds.
var bodyPools [len(bodyClasses)]sync.Pool

// bodySize is the capacity for a body of more than n bytes so far, and of most in the end.
func bodySize(n, most int64) int64 {
	for _, size := range bodyClasses {
		if n < size {
			return size
		}
	}
	return min(bodyGrowth*n, most)
}

func bodyMemory(size int64) []byte {
	for i, class := range bodyClasses {
		if size == class {
			if b, ok := bodyPools[i].Get().(*[]byte); ok {
				return (*b)[:0]
			}
		}
	}
	return make([]byte, 0, size)
}

// releaseBody gives memory of bodyMemory back.
func releaseBody(b []byte) {
	for i, class := range bodyClasses {
		if int64(cap(b)) == class {
			bodyPools[i].Put(&b)
		}
	}
}

// receive reads a body of length bytes (-1: unknown), which begins with head. grow charges the
// request for more bytes. Also with an error, the caller gives the body to releaseBody.
func (s *Stage) receive(p *pacedBody, head []byte, length int64, grow func(int64) error) (b []byte, err error) {
	most := length
	if most < 0 {
		most = s.set.MaxRequestBytes + 1
	}
	for first := true; first || int64(len(b)) < most; first = false {
		if len(b) == cap(b) {
			size := bodySize(int64(len(b)), most)
			if err := p.pause(func() error { return grow(size - int64(cap(b))) }); err != nil {
				return b, err
			}
			next := append(append(bodyMemory(size), b...), head...)
			releaseBody(b)
			b, head = next, nil
			continue
		}
		n, err := p.Read(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF) && (length < 0 || int64(len(b)) == length):
			most = int64(len(b))
		case errors.Is(err, io.EOF):
			return b, fmt.Errorf("%w: read: %w", errBody, io.ErrUnexpectedEOF)
		case err != nil:
			return b, fmt.Errorf("%w: read: %w", errBody, err)
		}
	}
	if int64(len(b)) > s.set.MaxRequestBytes {
		return b, &TooLarge{Limit: "max-request-bytes", Max: s.set.MaxRequestBytes}
	}
	return b, nil
}
