package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

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

// buffer is reusable memory for a body.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

const (
	// keepBuffer is the capacity (bytes) above which a buffer is not kept for reuse.
	keepBuffer = 4 << 20
	// collectAfter is how many bytes of buffers that were not kept may lie about. The collector by itself would let garbage grow to
	// the size of what is alive, and so let a few large bodies take twice the memory that max-inflight-bytes grants them.
	collectAfter = 32 << 20
)

// discarded is the size (bytes) of the buffers given up since the last collection that sized asked for.
var discarded atomic.Int64

func (b *buffer) release() {
	if cap(b.b) > keepBuffer {
		discarded.Add(int64(cap(b.b)))
		b.b = nil
	}
	buffers.Put(b)
}

func (b *buffer) sized(n int) []byte {
	if cap(b.b) < n {
		if n > keepBuffer && discarded.Load() > collectAfter {
			discarded.Store(0)
			runtime.GC()
		}
		b.b = make([]byte, n)
	}
	b.b = b.b[:n]
	return b.b
}

// readBody reads and decompresses a request body within the limits. The result lies in plain. The
// charge is for plain and for firstRoom of it; the caller releases it.
func (s *Stage) readBody(w http.ResponseWriter, r *http.Request, tenant string, plain *buffer) (*charge, error) {
	body := s.paced(w, r)
	var prefix [maxPrefix]byte
	head, decoded, err := s.peek(body, r.ContentLength, prefix[:])
	if err != nil {
		return nil, err
	}
	c := s.inflight.admit(tenant)
	if err := s.unpack(r, body, head, decoded, plain, c); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// unpack reads the body, which begins with head, and decompresses it into plain.
func (s *Stage) unpack(r *http.Request, body *pacedBody, head []byte, decoded int64, plain *buffer, c *charge) error {
	packed, err := s.receive(body, head, r.ContentLength, func(more int64) error { return s.await(r.Context(), c, more, false) })
	defer func() { releaseBody(packed) }()
	if err != nil {
		return err
	}
	body.end()
	if decoded > int64(len(packed))*maxExpansion {
		return fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", errBody, len(packed), decoded)
	}
	if err := s.await(r.Context(), c, decoded+s.set.firstRoom(decoded), true); err != nil {
		return err
	}
	out, err := snappy.Decode(plain.sized(int(decoded)), packed)
	if err != nil {
		return fmt.Errorf("%w: snappy: %w", errBody, err)
	}
	plain.b = out
	s.met.bodyBytes.WithLabelValues("snappy").Add(float64(len(packed)))
	s.met.bodyBytes.WithLabelValues("protobuf").Add(float64(len(out)))
	c.settle(decoded + s.set.firstRoom(decoded))
	return nil
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
