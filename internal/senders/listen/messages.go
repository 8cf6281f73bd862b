package listen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/promlake/promlake/internal/base/telemetry"
)

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
