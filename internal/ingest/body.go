package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/snappy"
)

// TooLarge reports a body over a limit; the answer is 413.
type TooLarge struct {
	Limit string // the setting's name
	Max   int64  // bytes
	Got   int64  // bytes; 0 if the end was not seen
}

func (e *TooLarge) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("request body exceeds the limit of %d bytes (%s)", e.Max, e.Limit)
	}
	return fmt.Sprintf("request body of %d bytes exceeds the limit of %d bytes (%s)", e.Got, e.Max, e.Limit)
}

// errBody reports a body that is no snappy block or did not arrive whole.
var errBody = errors.New("invalid request body")

// maxExpansion is the most that a snappy block can grow: a copy of 64 bytes takes 3 (google/snappy, format_description.txt), so
// a header that claims more is a lie, and is refused before any memory is set aside.
const maxExpansion = 22

// buffer is reusable memory for a decompressed body.
type buffer struct{ b []byte }

// Buffers of more than largeBuffer bytes have a pool of their own, so that small bodies do not hold
// their memory. A pool gives its memory to the garbage collector unless it is used soon.
var buffers, largeBuffers = sync.Pool{New: newBuffer}, sync.Pool{New: newBuffer}

func newBuffer() any { return new(buffer) }

const largeBuffer = 4 << 20

// bufferOf returns a buffer of n bytes.
func bufferOf(n int) *buffer {
	pool := &buffers
	if n > largeBuffer {
		pool = &largeBuffers
	}
	b := pool.Get().(*buffer)
	if cap(b.b) < n {
		b.b = make([]byte, n)
	}
	b.b = b.b[:n]
	return b
}

func (b *buffer) release() {
	if cap(b.b) > largeBuffer {
		largeBuffers.Put(b)
	} else {
		buffers.Put(b)
	}
}

// readBody reads and decompresses a request body within the limits. The charge is for the message
// and firstRoom of it. The caller releases both.
func (s *Stage) readBody(w http.ResponseWriter, r *http.Request, tenant string) (msg *buffer, c *charge, err error) {
	body := s.paced(w, r)
	var prefix [maxPrefix]byte
	head, decoded, err := s.peek(body, r.ContentLength, prefix[:])
	if err != nil {
		return nil, nil, err
	}
	c = s.inflight.admit(tenant)
	if msg, err = s.decompress(r, body, head, decoded, c); err != nil {
		c.release()
		return nil, nil, err
	}
	return msg, c, nil
}

// decompress reads the body, which begins with head, and decompresses it.
func (s *Stage) decompress(r *http.Request, body *pacedBody, head []byte, decoded int64, c *charge) (*buffer, error) {
	packed, err := s.receive(body, head, r.ContentLength, func(more int64) error { return s.await(r.Context(), c, more, false) })
	defer func() { releaseBody(packed) }()
	if err != nil {
		return nil, err
	}
	body.end()
	if decoded > int64(len(packed))*maxExpansion {
		return nil, fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", errBody, len(packed), decoded)
	}
	if err := s.await(r.Context(), c, decoded+s.set.firstRoom(decoded), true); err != nil {
		return nil, err
	}
	msg := bufferOf(int(decoded))
	if _, err := snappy.Decode(msg.b, packed); err != nil {
		msg.release()
		return nil, fmt.Errorf("%w: snappy: %w", errBody, err)
	}
	s.met.bodyBytes.WithLabelValues("snappy").Add(float64(len(packed)))
	s.met.bodyBytes.WithLabelValues("protobuf").Add(float64(len(msg.b)))
	c.settle(decoded + s.set.firstRoom(decoded))
	return msg, nil
}

// await takes more bytes for a request, and waits for them no longer than the limit says.
func (s *Stage) await(ctx context.Context, c *charge, more int64, whole bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.set.InflightWait)
	defer cancel()
	return c.await(ctx, more, whole)
}

// maxPrefix is how long the decoded length at the beginning of a snappy block can be, in bytes.
const maxPrefix = binary.MaxVarintLen64

// peek reads the beginning of the body, which tells the decoded length, and holds both lengths against the limits.
func (s *Stage) peek(body io.Reader, length int64, prefix []byte) (head []byte, decoded int64, err error) {
	if length > s.set.MaxRequestBytes {
		return nil, 0, &TooLarge{"max-request-bytes", s.set.MaxRequestBytes, length}
	}
	n, err := io.ReadFull(body, prefix)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, 0, fmt.Errorf("%w: %w", errBody, err)
	}
	head = prefix[:n]
	size, err := snappy.DecodedLen(head)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: snappy: %w", errBody, err)
	}
	if int64(size) > s.set.MaxDecodedBytes {
		return nil, 0, &TooLarge{"max-decoded-bytes", s.set.MaxDecodedBytes, int64(size)}
	}
	if length >= 0 && int64(size) > length*maxExpansion {
		return nil, 0, fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", errBody, length, size)
	}
	return head, int64(size), nil
}
