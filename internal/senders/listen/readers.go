package listen

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

// messages reads messages until the sender or the listener ends the connection. One that is too
// long ends it too.
func (l *Listener) messages(c net.Conn) {
	from := c.RemoteAddr().String()
	buf := make([]byte, maxLine)
	for {
		_ = c.SetReadDeadline(time.Now().Add(idle)) // fails only with the connection
		var head [4]byte
		if n, err := io.ReadFull(c, head[:]); err != nil {
			if n > 0 {
				l.met.dropped.WithLabelValues(droppedPartial).Inc()
			}
			return
		}
		size := binary.BigEndian.Uint32(head[:])
		if int64(size) > int64(l.protocol.MaxMessage) {
			l.met.dropped.WithLabelValues(droppedLong).Inc()
			l.complain("a connection was closed: its message is too long", "limit", l.protocol.MaxMessage, "bytes", size, "from", from)
			return
		}
		if err := l.message(c, buf, int(size), from); err != nil {
			l.met.dropped.WithLabelValues(droppedPartial).Inc()
			return
		}
	}
}

// message receives and unpacks a message of size bytes.
func (l *Listener) message(c net.Conn, buf []byte, size int, from string) error {
	_ = c.SetReadDeadline(time.Now().Add(messageTime)) // fails only with the connection
	ctx, cancel := context.WithTimeout(l.ctx, messageTime)
	defer cancel()
	held := int64(0)
	defer func() { l.arriving.Release(held) }()
	message, err := receive(c, buf, size, func(n int64) error {
		if err := l.arriving.Acquire(ctx, n); err != nil {
			return fmt.Errorf("wait for memory: %w", err)
		}
		held += n
		return nil
	})
	if err == nil {
		l.unpack(message, from)
	}
	return err
}

// receive reads size bytes, first into buf. Memory grows with what has arrived, whatever was
// announced; grow is called before it does, with the number of bytes.
func receive(r io.Reader, buf []byte, size int, grow func(n int64) error) ([]byte, error) {
	n := 0
	for n < size {
		if n == len(buf) {
			more := min(len(buf), size-n)
			if err := grow(int64(more)); err != nil {
				return nil, err
			}
			buf = append(buf, make([]byte, more)...)
		}
		k, err := r.Read(buf[n:min(size, len(buf))])
		if n += k; err != nil && n < size {
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
	return buf[:size], nil
}

// unpack takes the lines of a message.
func (l *Listener) unpack(message []byte, from string) {
	l.unpacking.Lock()
	defer l.unpacking.Unlock()
	var bad int
	var why error
	err := telemetry.Guard(func() (err error) {
		bad, why, err = l.protocol.Unpack(message, func(lines []byte) { l.take(lines, "tcp", true) })
		return err
	})()
	if bad > 0 {
		l.met.dropped.WithLabelValues(droppedPoint).Add(float64(bad))
		l.complain("points of a message were left out", "points", bad, "err", why, "from", from)
	}
	if err != nil {
		l.met.dropped.WithLabelValues(droppedMessage).Inc()
		l.complain("a message was left out, or the rest of it", "err", err, "from", from)
	}
}
