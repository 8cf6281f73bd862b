// Package body reads the bodies of write requests within limits of size, rate and memory, and
// shares the memory for requests in flight among tenants.
package body

import (
	"errors"
	"fmt"
	"sync"
	"time"

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

// Message is the decompressed body of a request, in memory that is reused after Release.
type Message struct{ Bytes []byte }

// Messages of more than largeMessage bytes have a pool of their own, so that small ones do not hold
// their memory. A pool gives its memory to the garbage collector unless it is used soon.
var messages, largeMessages = sync.Pool{New: newMessage}, sync.Pool{New: newMessage}

func newMessage() any { return new(Message) }

const largeMessage = 4 << 20

// larger returns a message of n bytes that begins with the first used bytes of m, which it
// releases.
func (m *Message) larger(n, used int64) *Message {
	out := messageOf(int(n))
	if m != nil {
		copy(out.Bytes, m.Bytes[:used])
		m.Release()
	}
	return out
}

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

// Release gives the memory back for reuse. It does nothing for nil.
func (m *Message) Release() {
	switch {
	case m == nil:
	case cap(m.Bytes) > largeMessage:
		largeMessages.Put(m)
	default:
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
