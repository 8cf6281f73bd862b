package ingest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// errSlow reports a body that arrives more slowly than it must. The answer is 503: the samples may
// be good, and senders give up on 408.
type errSlow struct {
	got   int64 // bytes
	grace time.Duration
	rate  int64 // bytes/s
}

func (e *errSlow) Error() string {
	return fmt.Sprintf("request body arrives too slowly: %d bytes so far, the limit is %d bytes a second (min-body-rate) after %s (body-grace); try again", e.got, e.rate, e.grace)
}

// pacedBody reads a request's body as long as it arrives in time: n bytes may take the grace period
// and n/rate seconds, and not more than the server's own limit for a request.
type pacedBody struct {
	body  io.Reader
	conn  *http.ResponseController
	now   func() time.Time
	began time.Time
	most  time.Duration // 0: no limit
	grace time.Duration
	rate  int64
	got   int64
}

func (s *Stage) paced(w http.ResponseWriter, r *http.Request) *pacedBody {
	p := &pacedBody{body: r.Body, conn: http.NewResponseController(w), now: s.now, began: s.now(), grace: s.set.BodyGrace, rate: s.set.MinBodyRate}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		p.most = server.ReadTimeout
	}
	return p
}

// Read implements io.Reader.
func (p *pacedBody) Read(b []byte) (int, error) {
	allowed := p.grace + time.Duration(float64(p.got)/float64(p.rate)*float64(time.Second))
	if p.most > 0 {
		allowed = min(allowed, p.most)
	}
	left := allowed - p.now().Sub(p.began)
	if left <= 0 {
		return 0, &errSlow{p.got, p.grace, p.rate}
	}
	// What is no connection, such as an event of Lambda, has no deadlines and does not stall.
	_ = p.conn.SetReadDeadline(time.Now().Add(left))
	n, err := p.body.Read(b)
	p.got += int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &errSlow{p.got, p.grace, p.rate}
	}
	return n, err
}

// pause does f, whose time does not count as the sender's.
func (p *pacedBody) pause(f func() error) error {
	begin := p.now()
	err := f()
	p.began = p.began.Add(p.now().Sub(begin))
	return err
}

// end takes the deadline back: the connection must stay readable while the request waits for its
// flush.
func (p *pacedBody) end() { _ = p.conn.SetReadDeadline(time.Time{}) }
