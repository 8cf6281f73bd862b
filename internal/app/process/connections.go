package process

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// spareConnections are open beyond the limit while all others are busy. They are for requests that
// are answered at once: for the health of the process, or with 503.
const spareConnections = 16

// Connections bounds the connections of a server. A connection beyond the limit takes the place of
// the oldest one that has sent no request yet, or else of the one that has been idle longest.
// Connections whose clients do not read are closed as well. It is a listener.
type Connections struct {
	net.Listener
	limit, spare int
	stall        time.Duration // a client must read something in it

	refused prometheus.Counter
	stalled prometheus.Counter
	current prometheus.Gauge

	mu     sync.Mutex
	open   map[net.Conn]*list.Element // in silent or idle; nil: busy
	silent *list.List                 // of net.Conn without a request yet, oldest first
	idle   *list.List                 // of net.Conn, longest idle first
}

// NewConnections bounds the connections of a server, which is part of the names of the metrics. The
// limit is that of a flag. A client must read something within stall.
func NewConnections(ln net.Listener, server, flag string, limit int, stall time.Duration) *Connections {
	name := "promlake_" + server + "_connections"
	return &Connections{
		Listener: ln, limit: limit, stall: stall, open: map[net.Conn]*list.Element{}, silent: list.New(), idle: list.New(),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: name + "_refused_total", Help: "Connections refused because of --" + flag + "."}),
		stalled: prometheus.NewCounter(prometheus.CounterOpts{Name: name + "_stalled_total", Help: "Connections closed because the client read nothing within --http.write-stall-timeout."}),
		current: prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Open connections."}),
	}
}

// Register registers the metrics, and panics if reg has them already.
func (c *Connections) Register(reg prometheus.Registerer) {
	reg.MustRegister(c.refused, c.stalled, c.current)
}

// busy is the number of connections with a request. The caller holds c.mu.
func (c *Connections) busy() int { return len(c.open) - c.silent.Len() - c.idle.Len() }

// admit counts a new connection, and reports whether there is room for it.
func (c *Connections) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.limit
	if c.busy() >= most {
		most += c.spare
	}
	if len(c.open) >= most {
		first := cmp.Or(c.silent.Front(), c.idle.Front())
		if first == nil {
			return false
		}
		c.drop(first.Value.(net.Conn))
	}
	c.open[conn] = c.silent.PushBack(conn)
	c.current.Set(float64(len(c.open)))
	return true
}

// CloseSilent closes the connections that have sent no request.
func (c *Connections) CloseSilent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for first := c.silent.Front(); first != nil; first = c.silent.Front() {
		c.drop(first.Value.(net.Conn))
	}
}

// drop closes a connection without a request, so that an error can lose no answer. The caller holds
// c.mu, for which Close waits.
func (c *Connections) drop(conn net.Conn) {
	c.forget(conn)
	go conn.Close()
}

// forget takes a connection out of the count. The caller holds c.mu.
func (c *Connections) forget(conn net.Conn) {
	c.unlist(conn)
	delete(c.open, conn)
	c.current.Set(float64(len(c.open)))
}

func (c *Connections) unlist(conn net.Conn) {
	if e := c.open[conn]; e != nil {
		c.silent.Remove(e)
		c.idle.Remove(e)
		c.open[conn] = nil
	}
}

// note is http.Server's ConnState.
func (c *Connections) note(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if state == http.StateActive {
		conn.(*watchedConn).fresh = true
	}
	c.Note(conn, state)
}

// Note takes down the state of a connection, which is busy from StateActive to StateIdle.
func (c *Connections) Note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[conn]; !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.unlist(conn)
	case http.StateIdle:
		c.unlist(conn)
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateClosed, http.StateHijacked:
		c.forget(conn)
	}
}

// bounded passes requests to next, except those beyond the limit of busy connections. It answers
// these with 503, unless they ask for the health of the process.
func (c *Connections) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		full := c.busy() > c.limit
		c.mu.Unlock()
		if full {
			w.Header().Set("Connection", "close")
		}
		if full && r.URL.Path != healthyPath && r.URL.Path != readyPath {
			c.refused.Inc()
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusServiceUnavailable, fmt.Sprintf("too many connections: the limit is %d (--web.max-connections)\n", c.limit))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Accept implements net.Listener.
func (c *Connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if watched := (&watchedConn{Conn: conn, connections: c}); c.admit(watched) {
			return watched, nil
		}
		c.refused.Inc()
		_ = conn.Close() // nothing was written
	}
}

// watchedConn ends a connection whose client does not read, and sends the head of an answer
// together with its body.
type watchedConn struct {
	net.Conn
	connections *Connections
	sooner      atomic.Int64 // the deadline that a handler has set: Unix ns; 0: none

	// Only the goroutine that serves the connection uses these.
	fresh bool     // nothing was written of the answer to the last request
	begun *opening // is written with what follows it; nil: everything is written
}

// SetWriteDeadline implements net.Conn, for the writes that begin later. A handler may be less
// patient than the server, and not more.
func (w *watchedConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		w.sooner.Store(0)
	} else {
		w.sooner.Store(t.UnixNano())
	}
	return nil
}

// deadline is that of the next part.
func (w *watchedConn) deadline() time.Time {
	end := time.Now().Add(w.connections.stall)
	if t := w.sooner.Load(); t != 0 && t < end.UnixNano() {
		return time.Unix(0, t)
	}
	return end
}

// Close implements net.Conn. The connection gives up its place.
func (w *watchedConn) Close() error {
	w.connections.Note(w, http.StateClosed)
	return w.Conn.Close()
}

// writePart is how much a client must read within the stall timeout.
const writePart = 64 << 10

// Write implements net.Conn.
func (w *watchedConn) Write(b []byte) (int, error) {
	first := w.fresh
	if w.fresh = false; first && len(b) <= openingBytes && goesOn(b) {
		w.begun = openings.Get().(*opening)
		w.begun.text = append(w.begun.text[:0], b...)
		return len(b), nil
	}
	done := 0
	for {
		part := b[done:min(len(b), done+writePart)]
		if err := w.Conn.SetWriteDeadline(w.deadline()); err != nil {
			return done, err
		}
		n, err := w.send(part)
		done += n
		if err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				w.connections.stalled.Inc()
			}
			return done, err
		}
		if done == len(b) {
			return done, nil
		}
	}
}

// send writes a part, after what was begun.
func (w *watchedConn) send(part []byte) (int, error) {
	if w.begun == nil {
		return w.Conn.Write(part)
	}
	before := len(w.begun.text)
	both := net.Buffers{w.begun.text, part}
	n, err := both.WriteTo(w.Conn)
	openings.Put(w.begun)
	w.begun = nil
	return max(0, int(n)-before), err
}

// openingBytes is the size of the buffer in which net/http assembles an answer. A longer answer is
// written in two pieces: the full buffer, and then the rest. One write of both takes a twentieth
// less of a small query's time: the client is woken once.
const openingBytes = 4 << 10

// opening is the first piece of an answer.
type opening struct{ text []byte }

var openings = sync.Pool{New: func() any { return &opening{make([]byte, 0, openingBytes)} }}

// goesOn reports whether the first piece of an answer has a part of the body, and the rest follows:
// net/http writes as many bytes as the head says, or closes the connection. Answers to HEAD have no
// body.
func goesOn(first []byte) bool {
	head, body, _ := bytes.Cut(first, []byte("\r\n\r\n"))
	_, length, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
	digits, _, _ := bytes.Cut(length, []byte("\r\n"))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	return err == nil && len(body) > 0 && int64(len(body)) < n
}
