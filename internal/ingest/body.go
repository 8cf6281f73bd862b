package ingest

import (
	"bytes"
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

// errBusy reports that the bytes of the requests in flight leave no room for another; the answer is 503.
var errBusy = errors.New("too many bytes in flight")

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

// readBody reads and decompresses a request body within the limits. The result lies in plain. The caller calls done when it no longer needs
// plain.
func (s *Stage) readBody(r *http.Request, plain *buffer) (done func(), err error) {
	var prefix [maxPrefix]byte
	head, decoded, err := s.peek(r, prefix[:])
	if err != nil {
		return nil, err
	}
	weight := decoded + s.set.MaxRequestBytes
	if r.ContentLength >= 0 {
		weight = decoded + r.ContentLength
	}
	// Both shares are taken at once, before memory is set aside, so that requests cannot wait for each other's second share.
	if err := s.acquire(r.Context(), weight); err != nil {
		return nil, err
	}
	if err := s.unpack(r, head, decoded, plain); err != nil {
		s.inflight.Release(weight)
		return nil, err
	}
	return func() { s.inflight.Release(weight) }, nil
}

// unpack reads the body, which begins with head, and decompresses it into plain.
func (s *Stage) unpack(r *http.Request, head []byte, decoded int64, plain *buffer) error {
	packed := buffers.Get().(*buffer)
	defer packed.release()
	if err := s.receive(r, head, packed); err != nil {
		return err
	}
	if decoded > int64(len(packed.b))*maxExpansion {
		return fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", errBody, len(packed.b), decoded)
	}
	out, err := snappy.Decode(plain.sized(int(decoded)), packed.b)
	if err != nil {
		return fmt.Errorf("%w: snappy: %w", errBody, err)
	}
	plain.b = out
	s.met.bodyBytes.WithLabelValues("snappy").Add(float64(len(packed.b)))
	s.met.bodyBytes.WithLabelValues("protobuf").Add(float64(len(out)))
	return nil
}

// maxPrefix is how long the decoded length at the beginning of a snappy block can be, in bytes.
const maxPrefix = binary.MaxVarintLen64

// peek reads the beginning of the body, which tells the decoded length, and holds both lengths against the limits.
func (s *Stage) peek(r *http.Request, prefix []byte) (head []byte, decoded int64, err error) {
	if r.ContentLength > s.set.MaxRequestBytes {
		return nil, 0, &TooLarge{"max-request-bytes", s.set.MaxRequestBytes, r.ContentLength}
	}
	n, err := io.ReadFull(r.Body, prefix)
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
	if r.ContentLength >= 0 && int64(size) > r.ContentLength*maxExpansion {
		return nil, 0, fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", errBody, r.ContentLength, size)
	}
	return head, int64(size), nil
}

func (s *Stage) acquire(ctx context.Context, weight int64) error {
	if s.inflight.TryAcquire(weight) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.set.InflightWait)
	defer cancel()
	if err := s.inflight.Acquire(ctx, weight); err != nil {
		return fmt.Errorf("%w: the limit is %d bytes (max-inflight-bytes)", errBusy, s.set.MaxInflightBytes)
	}
	return nil
}

// receive reads the body as it was sent; head is its beginning.
func (s *Stage) receive(r *http.Request, head []byte, into *buffer) error {
	if r.ContentLength >= 0 {
		b := into.sized(int(r.ContentLength))
		n := copy(b, head)
		if _, err := io.ReadFull(r.Body, b[n:]); err != nil {
			return fmt.Errorf("%w: read: %w", errBody, err)
		}
		return nil
	}
	b := bytes.NewBuffer(into.b[:0])
	b.Write(head)
	if _, err := b.ReadFrom(io.LimitReader(r.Body, s.set.MaxRequestBytes-int64(len(head))+1)); err != nil {
		return fmt.Errorf("%w: read: %w", errBody, err)
	}
	into.b = b.Bytes()
	if int64(len(into.b)) > s.set.MaxRequestBytes {
		return &TooLarge{Limit: "max-request-bytes", Max: s.set.MaxRequestBytes}
	}
	return nil
}
