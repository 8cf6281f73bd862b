package body

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
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

// receive reads a body, and charges its memory as it grows. The caller gives the body to recycle,
// also after an error.
func (r *Reader) receive(req *http.Request, p *Paced, c *Charge) (b []byte, err error) {
	length := req.ContentLength // -1: unknown
	most := length
	if most < 0 {
		most = r.limits.MaxRequestBytes + 1
	}
	for int64(len(b)) < most {
		if len(b) == cap(b) {
			size, begin := nextSize(int64(len(b)), most), p.now()
			if err := c.Await(req.Context(), r.limits.InflightWait, size-int64(cap(b)), false); err != nil {
				return b, err
			}
			p.began = p.began.Add(p.now().Sub(begin)) // the wait is not the sender's
			larger := append(memoryOf(size), b...)
			recycle(b)
			b = larger
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

// SlowError reports a body that arrives more slowly than it must. The answer is 503: the samples
// may be good, and senders give up on 408.
type SlowError struct {
	got   int64 // bytes
	grace time.Duration
	rate  int64 // bytes/s
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("request body arrives too slowly: %d bytes so far, the limit is %d bytes a second (min-body-rate) after %s (body-grace); try again", e.got, e.rate, e.grace)
}

// Paced reads a request's body as long as it arrives in time: n bytes may take the grace period and
// n/rate seconds.
type Paced struct {
	body  io.Reader
	conn  *http.ResponseController
	now   func() time.Time
	began time.Time
	most  time.Duration // 0: no limit
	grace time.Duration
	rate  int64
	got   int64
}

// NewPaced returns the reader of a request's body. now is the clock, grace the time in which the
// body may arrive at any rate, and rate what it must have afterwards, in bytes/s.
func NewPaced(w http.ResponseWriter, req *http.Request, now func() time.Time, grace time.Duration, rate int64) *Paced {
	return &Paced{body: req.Body, conn: http.NewResponseController(w), now: now, began: now(), grace: grace, rate: rate}
}

// paced reads the body no longer than the server's own limit for a request, too.
func (r *Reader) paced(w http.ResponseWriter, req *http.Request) *Paced {
	p := NewPaced(w, req, r.now, r.limits.Grace, r.limits.MinRate)
	if server, ok := req.Context().Value(http.ServerContextKey).(*http.Server); ok {
		p.most = server.ReadTimeout
	}
	return p
}

// Read implements io.Reader. Errors: *SlowError.
func (p *Paced) Read(b []byte) (int, error) {
	allowed := p.grace + time.Duration(float64(p.got)/float64(p.rate)*float64(time.Second))
	if p.most > 0 {
		allowed = min(allowed, p.most)
	}
	left := allowed - p.now().Sub(p.began)
	if left <= 0 {
		return 0, &SlowError{p.got, p.grace, p.rate}
	}
	// Deadlines are by the system's clock. A request that is no connection, such as an event of
	// Lambda, has none and does not stall.
	_ = p.conn.SetReadDeadline(time.Now().Add(left))
	n, err := p.body.Read(b)
	p.got += int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &SlowError{p.got, p.grace, p.rate}
	}
	return n, err
}

// End removes the deadline: the connection must stay readable while the request is served.
func (p *Paced) End() { _ = p.conn.SetReadDeadline(time.Time{}) }
