package emulator

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"
)

// invocation is an event without an answer so far.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	answer   chan answer // receives exactly one
	body     *io.PipeWriter
}

type answer struct {
	stream *Stream
	err    error
}

// fail reports err to the caller, before the answer or within it.
func (i *invocation) fail(err error) {
	select {
	case i.answer <- answer{err: err}:
	default: // the answer has begun; the error ends its body
	}
	if i.body != nil {
		_ = i.body.CloseWithError(err)
	}
}

// invoke runs one event in a claimed slot and releases the slot at the end of the answer.
func (e *environment) invoke(ctx context.Context, payload []byte) (*Stream, error) {
	inv := &invocation{
		id: requestID(), payload: payload, deadline: time.Now().Add(e.f.set.Timeout),
		answer: make(chan answer, 1),
	}
	timeout := time.AfterFunc(e.f.set.Timeout, func() {
		e.blame(&FunctionError{ErrorTimeout, fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", inv.id, e.f.set.Timeout.Seconds())})
		e.kill()
	})
	done := sync.OnceFunc(func() {
		timeout.Stop()
		e.f.free(e)
	})
	select {
	case e.events <- inv:
	case <-e.gone:
	}
	select {
	case <-e.gone: // the process may have ended before it received the event
		e.fail()
	default:
	}
	select {
	case a := <-inv.answer:
		if a.err != nil {
			done()
			return nil, a.err
		}
		a.stream.Body = &closer{a.stream.Body, done}
		return a.stream, nil
	case <-ctx.Done():
		// Lambda finishes invocations whose callers have gone.
		go func() {
			defer done()
			if a := <-inv.answer; a.err == nil {
				_ = a.stream.Body.Close()
			}
		}()
		return nil, fmt.Errorf("invoke: %w", ctx.Err())
	}
}

// closer calls done at the end of the answer, or when the caller closes it.
type closer struct {
	io.ReadCloser
	done func()
}

// Read implements io.Reader.
func (c *closer) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil {
		c.done()
	}
	return n, err
}

// Close implements io.Closer.
func (c *closer) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
