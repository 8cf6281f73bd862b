// Package body reads the bodies of write requests within limits of size, rate and memory, and
// shares the memory for requests in flight among tenants.
package body

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"
)

// Limits bound a body.
type Limits struct {
	MaxRequestBytes  int64         // as sent
	MaxDecodedBytes  int64         // after decompression
	MaxInflightBytes int64         // memory of one request
	InflightWait     time.Duration // how long a request waits for its share of the memory
	Grace            time.Duration // the body may arrive at any rate for so long
	MinRate          int64         // bytes/s at which it must arrive afterwards
}

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

// ErrInvalid reports a body that cannot be decompressed or did not arrive whole.
var ErrInvalid = errors.New("invalid request body")

// maxExpansion is the most that a snappy block can grow: a copy of 64 bytes takes 3 (google/snappy,
// format_description.txt). A header that claims more is refused before any memory is set aside.
const maxExpansion = 22

// Message is the decompressed body of a request, in memory that is reused after Release.
type Message struct{ Bytes []byte }

// Messages of more than largeMessage bytes have a pool of their own, so that small ones do not hold
// their memory. A pool gives its memory to the garbage collector unless it is used soon.
var messages, largeMessages = sync.Pool{New: newMessage}, sync.Pool{New: newMessage}

func newMessage() any { return new(Message) }

const largeMessage = 4 << 20

func messageOf(n int) *Message {
	pool := &messages
	if n > largeMessage {
		pool = &largeMessages
	}
	m := pool.Get().(*Message)
	if cap(m.Bytes) < n {
		m.Bytes = make([]byte, n)
	}
	m.Bytes = m.Bytes[:n]
	return m
}

// Release gives the memory back for reuse.
func (m *Message) Release() {
	if cap(m.Bytes) > largeMessage {
		largeMessages.Put(m)
	} else {
		messages.Put(m)
	}
}

// Reader reads bodies. It is safe for concurrent use.
type Reader struct {
	limits Limits
	budget *Budget
	now    func() time.Time
	bytes  *prometheus.CounterVec // by form
}

// NewReader returns a reader that takes the memory of bodies from a budget. The counter has a label
// for the form: snappy, gzip, zstd, deflate, protobuf, json or text.
func NewReader(limits Limits, budget *Budget, now func() time.Time, bytes *prometheus.CounterVec) *Reader {
	return &Reader{limits, budget, now, bytes}
}

// Ahead is the memory (bytes) for decoding a message of n bytes that is granted before it is
// decoded. With the message and its body it fits the limit.
func (r *Reader) Ahead(n int64) int64 {
	body := max(r.limits.MaxRequestBytes+1, classes[0])
	return max(0, min(64<<10+2*n, r.limits.MaxInflightBytes-body-n))
}

// Read reads and decompresses the body of a tenant's request. The charge is for the message and
// what is granted ahead. The caller releases both.
func (r *Reader) Read(w http.ResponseWriter, req *http.Request, tenant string) (*Message, *Charge, error) {
	in := r.paced(w, req)
	var prefix [maxPrefix]byte
	head, decoded, err := r.peek(in, req.ContentLength, prefix[:])
	if err != nil {
		return nil, nil, err
	}
	c := r.budget.Admit(tenant)
	m, err := r.decompress(req, in, head, decoded, c)
	if err != nil {
		c.Release()
		return nil, nil, err
	}
	return m, c, nil
}

// decompress reads the body, which begins with head, and decompresses it.
func (r *Reader) decompress(req *http.Request, in *Paced, head []byte, decoded int64, c *Charge) (*Message, error) {
	packed, err := r.receive(in, head, req.ContentLength, func(more int64) error { return c.Await(req.Context(), r.limits.InflightWait, more, false) })
	defer func() { recycle(packed) }()
	if err != nil {
		return nil, err
	}
	in.End()
	if decoded > int64(len(packed))*maxExpansion {
		return nil, fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", ErrInvalid, len(packed), decoded)
	}
	total := decoded + r.Ahead(decoded)
	if err := c.Await(req.Context(), r.limits.InflightWait, total, true); err != nil {
		return nil, err
	}
	m := messageOf(int(decoded))
	if _, err := snappy.Decode(m.Bytes, packed); err != nil {
		m.Release()
		return nil, fmt.Errorf("%w: snappy: %w", ErrInvalid, err)
	}
	r.bytes.WithLabelValues("snappy").Add(float64(len(packed)))
	r.bytes.WithLabelValues("protobuf").Add(float64(len(m.Bytes)))
	c.Settle(total)
	return m, nil
}

// maxPrefix is the longest encoding of the decoded length at the beginning of a snappy block, in
// bytes.
const maxPrefix = binary.MaxVarintLen64

// peek reads the beginning of the body, which has the decoded length, and checks both lengths.
func (r *Reader) peek(in io.Reader, length int64, prefix []byte) (head []byte, decoded int64, err error) {
	if length > r.limits.MaxRequestBytes {
		return nil, 0, &TooLarge{"max-request-bytes", r.limits.MaxRequestBytes, length}
	}
	n, err := io.ReadFull(in, prefix)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	head = prefix[:n]
	size, err := snappy.DecodedLen(head)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: snappy: %w", ErrInvalid, err)
	}
	if int64(size) > r.limits.MaxDecodedBytes {
		return nil, 0, &TooLarge{"max-decoded-bytes", r.limits.MaxDecodedBytes, int64(size)}
	}
	if length >= 0 && int64(size) > length*maxExpansion {
		return nil, 0, fmt.Errorf("%w: snappy: %d bytes cannot hold the %d bytes that they claim", ErrInvalid, length, size)
	}
	return head, int64(size), nil
}
