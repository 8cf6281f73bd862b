package process

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// watchedConn ends a connection whose client does not read, and sends the head of an answer together
// with its body.
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
// written in two pieces: the full buffer, and then the rest. One write of both takes a twentieth less
// of a small query's time: the client is woken once.
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
