package process

import (
	"container/list"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// connections bounds the connections of a server. A connection beyond the limit takes the place of
// the one that has been idle longest, or is answered with 503 and closed if none is idle.
// Connections whose clients do not read are closed as well.
type connections struct {
	limit int
	stall time.Duration // a client must read something in it

	refused prometheus.Counter
	stalled prometheus.Counter
	current prometheus.Gauge

	mu   sync.Mutex
	open map[net.Conn]*list.Element // in idle; nil: not idle
	idle *list.List                 // of net.Conn, longest idle first
}

func newConnections(limit int, stall time.Duration) *connections {
	return &connections{
		limit: limit, stall: stall, open: map[net.Conn]*list.Element{}, idle: list.New(),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "promlake_http_connections_refused_total", Help: "Connections refused because of --web.max-connections."}),
		stalled: prometheus.NewCounter(prometheus.CounterOpts{Name: "promlake_http_connections_stalled_total", Help: "Connections closed because the client read nothing within --http.write-stall-timeout."}),
		current: prometheus.NewGauge(prometheus.GaugeOpts{Name: "promlake_http_connections", Help: "Open connections."}),
	}
}

func (c *connections) register(reg prometheus.Registerer) error {
	for _, m := range []prometheus.Collector{c.refused, c.stalled, c.current} {
		if err := reg.Register(m); err != nil {
			return fmt.Errorf("register metrics of connections: %w", err)
		}
	}
	return nil
}

// admit counts a new connection, and reports whether there is room for it.
func (c *connections) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.limit {
		longest := c.idle.Front()
		if longest == nil {
			return false
		}
		// The connection is idle, so an error can lose no answer.
		_ = c.forget(longest.Value.(net.Conn)).Close()
	}
	c.open[conn] = nil
	c.current.Set(float64(len(c.open)))
	return true
}

// forget drops a connection from the count. The caller holds c.mu.
func (c *connections) forget(conn net.Conn) net.Conn {
	if e := c.open[conn]; e != nil {
		c.idle.Remove(e)
	}
	delete(c.open, conn)
	c.current.Set(float64(len(c.open)))
	return conn
}

// note is http.Server's ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.open[conn]
	if w, watched := conn.(*watchedConn); watched && state == http.StateActive {
		w.fresh = true
	}
	switch {
	case !ok:
	case state == http.StateClosed || state == http.StateHijacked:
		c.forget(conn)
	case state == http.StateIdle && e == nil:
		c.open[conn] = c.idle.PushBack(conn)
	case state != http.StateIdle && e != nil:
		c.idle.Remove(e)
		c.open[conn] = nil
	}
}

// limited is a listener whose connections are bounded.
type limited struct {
	net.Listener
	*connections
}

const fullAnswer = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\nConnection: close\r\n\r\ntoo many connections: the limit is %d (--web.max-connections)\n"

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if watched := (&watchedConn{Conn: conn, connections: l.connections}); l.admit(watched) {
			return watched, nil
		}
		l.refused.Inc()
		// A fresh connection has room for a line, so this does not wait; the client may have gone,
		// and needs no answer then.
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(conn, fullAnswer, l.limit)
		_ = conn.Close()
	}
}
