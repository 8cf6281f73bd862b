package process

import (
	"container/list"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
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
		first := c.silent.Front()
		if first == nil {
			first = c.idle.Front()
		}
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
