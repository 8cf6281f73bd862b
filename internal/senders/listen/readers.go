package listen

import (
	"bytes"
	"cmp"
	"errors"
	"net"
	"time"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// accept serves connections until the listener is closed.
func (l *Listener) accept() {
	for {
		c, err := l.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			l.complain("cannot accept a connection", "err", err)
			select {
			case <-time.After(firstPause):
			case <-l.stop:
			}
			continue
		}
		if !l.admit(c) {
			_ = c.Close() // there is nobody to tell
			continue
		}
		l.met.open.Inc()
		l.readers.Go(func() {
			if l.protocol.Unpack != nil {
				l.messages(c)
			} else {
				l.connection(c)
			}
			l.met.open.Dec()
			l.memory.Release(maxLine)
			_ = c.Close() // nothing was written
			l.mu.Lock()
			delete(l.conns, c)
			l.mu.Unlock()
		})
	}
}

// admit counts a connection, unless there are too many, the process has no memory for it, or the
// listener is closed.
func (l *Listener) admit(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	if len(l.conns) >= l.set.MaxConnections {
		l.complain("a connection was closed at once: too many are open", "limit", l.set.MaxConnections, "flag", "--"+cmp.Or(l.protocol.Flags, l.protocol.Name)+".max-connections")
		return false
	}
	if err := l.memory.TryAcquire(maxLine); err != nil {
		l.complain("a connection was closed at once", "err", err)
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

// connection reads lines until the sender or the listener ends the connection.
func (l *Listener) connection(c net.Conn) {
	buf, n, skip := make([]byte, maxLine), 0, false
	for {
		_ = c.SetReadDeadline(time.Now().Add(idle)) // fails only with the connection
		k, err := c.Read(buf[n:])
		n += k
		if end := bytes.LastIndexByte(buf[:n], '\n') + 1; end > 0 {
			from := 0
			if skip { // the rest of a line that was too long
				from, skip = bytes.IndexByte(buf[:end], '\n')+1, false
			}
			l.take(buf[from:end], "tcp", true)
			n = copy(buf, buf[end:n])
		}
		switch {
		case err != nil:
			if n > 0 && !skip {
				l.met.dropped.WithLabelValues(droppedPartial).Inc()
			}
			return
		case n == len(buf):
			if !skip {
				l.met.dropped.WithLabelValues(droppedLong).Inc()
				l.complain("a line was dropped: it is too long", "limit", maxLine, "from", c.RemoteAddr().String())
			}
			n, skip = 0, true
		}
	}
}

// datagrams reads datagrams until the listener is closed. Each has complete lines; the last may
// have no end.
func (l *Listener) datagrams() {
	buf := make([]byte, maxDatagram+1)
	for {
		n, _, err := l.udp.ReadFrom(buf[:maxDatagram])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.complain("cannot read a datagram", "err", err)
			select {
			case <-time.After(firstPause):
			case <-l.stop:
			}
			continue
		}
		if n > 0 && buf[n-1] != '\n' {
			buf[n] = '\n'
			n++
		}
		l.take(buf[:n], "udp", false)
	}
}

// guard calls f, which works on so many lines. They are counted as dropped if it panics.
func (l *Listener) guard(lines float64, f func()) {
	if err := telemetry.Guard(func() error { f(); return nil })(); err != nil {
		l.met.dropped.WithLabelValues(droppedDefect).Add(lines)
		l.complain("lines were dropped, or a part of them", "err", err)
	}
}

// take adds complete lines up, or to the queue.
func (l *Listener) take(lines []byte, transport string, wait bool) {
	if len(lines) == 0 {
		return
	}
	n := float64(bytes.Count(lines, []byte{'\n'}))
	l.met.lines.WithLabelValues(transport).Add(n)
	if l.protocol.Aggregate != nil {
		l.guard(n, func() {
			l.protocol.Aggregate.Add(lines, func(reason string, err error) {
				l.met.dropped.WithLabelValues(reason).Inc()
				l.complain("a part of a line was left out", "err", err)
			}, func(reason string, err error) {
				l.met.ignored.WithLabelValues(reason).Inc()
				l.complain("a part of an event was ignored", "err", err)
			})
		})
		return
	}
	size, reason := int64(len(lines)), droppedFull
	var err error
	if wait {
		err = l.memory.Acquire(l.ctx, size)
	} else {
		err = l.memory.TryAcquire(size)
	}
	if err == nil {
		if l.queue.add(lines, l.now(), wait) {
			return
		}
		l.memory.Release(size)
	} else {
		reason = droppedMemory
	}
	select {
	case <-l.stop:
		reason = droppedShutdown
	default:
	}
	l.met.dropped.WithLabelValues(reason).Add(n)
	l.complain("lines were dropped", "reason", reason, "transport", transport)
}
