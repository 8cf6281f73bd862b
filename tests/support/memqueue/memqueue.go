// Package memqueue is a queue in memory for tests. It delivers at least once, in no guaranteed
// order, and fails where a test specifies a fault.
package memqueue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/store/queue"
)

var (
	_ queue.Sender   = (*Queue)(nil)
	_ queue.Receiver = (*Queue)(nil)
)

// Settings configure a queue. The zero value is a plain queue.
type Settings struct {
	// Now is the queue's clock; nil is time.Now.
	Now func() time.Time
	// Faults is called before each call; nil lets all succeed. It may be called concurrently.
	Faults func(Call) Fault
	// MaxReceives is how often a message is delivered before it goes to DeadLetters; 0 is without
	// limit.
	MaxReceives int
	DeadLetters *Queue
}

// Op is a kind of call.
type Op string

// The calls of a queue.
const (
	Send    Op = "send"
	Receive Op = "receive"
	Delete  Op = "delete"
	Release Op = "release"
)

// Call is a call that is about to happen.
type Call struct {
	Op       Op
	Messages int // Send, Delete, Release
}

// Fault is what befalls a call. The zero value is nothing.
type Fault struct {
	Err   error           // fails the call; the caller gets an error that wraps it
	After bool            // the call takes effect first
	Only  int             // with After: the number of messages that take effect; 0 is all
	Twice bool            // a Send puts each message on the queue twice
	Until <-chan struct{} // delays the call until the channel is closed or the context ends
}

// Queue is a queue in memory.
type Queue struct {
	set Settings

	mu       sync.Mutex
	messages []message            // in the order of sending
	sent     map[string]time.Time // by deduplication identifier
	nextID   int
	handles  int
}

type message struct {
	queue.Received
	visible time.Time
}

// New returns an empty queue.
func New(s Settings) *Queue {
	if s.Now == nil {
		s.Now = time.Now
	}
	return &Queue{set: s, sent: map[string]time.Time{}}
}

// Send implements queue.Sender.
func (q *Queue) Send(ctx context.Context, ms ...queue.Message) error {
	for _, m := range ms {
		if err := m.Check(); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	n, f, err := q.begin(ctx, Send, len(ms))
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms[:n] {
		q.put(m)
		if f.Twice {
			q.put(m)
		}
	}
	return f.wrap(Send)
}

// deduplicated is how long a FIFO queue remembers a deduplication identifier.
const deduplicated = 5 * time.Minute

func (q *Queue) put(m queue.Message) {
	if d := m.Deduplication; d != "" {
		if at, ok := q.sent[d]; ok && q.set.Now().Sub(at) < deduplicated {
			return
		}
		q.sent[d] = q.set.Now()
	}
	q.nextID++
	q.messages = append(q.messages, message{Received: queue.Received{
		ID: "message-" + strconv.Itoa(q.nextID), Body: m.Body, Group: m.Group, Sent: q.set.Now(),
	}})
}

// Receive implements queue.Receiver. It does not wait.
func (q *Queue) Receive(ctx context.Context, limit int, _, visibility time.Duration) ([]queue.Received, error) {
	_, f, err := q.begin(ctx, Receive, 0)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bury()
	now := q.set.Now()
	var out []queue.Received
	for i := range q.messages {
		m := &q.messages[i]
		if len(out) == min(limit, queue.MaxBatch) || m.visible.After(now) {
			continue
		}
		q.handles++
		m.Handle, m.visible = m.ID+"/"+strconv.Itoa(q.handles), now.Add(visibility)
		m.Receives++
		out = append(out, m.Received)
	}
	if err := f.wrap(Receive); err != nil {
		return nil, err
	}
	return out, nil
}

// bury moves messages that have reached the limit of deliveries to the dead-letter queue, where
// they keep their identifiers and send times.
func (q *Queue) bury() {
	if q.set.MaxReceives == 0 || q.set.DeadLetters == nil {
		return
	}
	now := q.set.Now()
	dead := func(m message) bool { return m.Receives >= q.set.MaxReceives && !m.visible.After(now) }
	d := q.set.DeadLetters
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range q.messages {
		if dead(m) {
			m.visible = time.Time{}
			d.messages = append(d.messages, m)
		}
	}
	q.messages = slices.DeleteFunc(q.messages, dead)
}

// Delete implements queue.Receiver. SQS may ignore the handle of an earlier delivery; this queue
// always ignores it.
func (q *Queue) Delete(ctx context.Context, ms ...queue.Received) error {
	n, f, err := q.begin(ctx, Delete, len(ms))
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms[:n] {
		q.messages = slices.DeleteFunc(q.messages, func(x message) bool { return x.Handle == m.Handle })
	}
	return f.wrap(Delete)
}

// Release implements queue.Receiver.
func (q *Queue) Release(ctx context.Context, wait time.Duration, ms ...queue.Received) error {
	n, f, err := q.begin(ctx, Release, len(ms))
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms[:n] {
		for i := range q.messages {
			if q.messages[i].Handle == m.Handle {
				q.messages[i].visible = q.set.Now().Add(wait)
			}
		}
	}
	return f.wrap(Release)
}

// Messages returns the messages on the queue, hidden or not, in the order of sending. It is not a
// Call, so no fault applies to it.
func (q *Queue) Messages() []queue.Received {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]queue.Received, len(q.messages))
	for i, m := range q.messages {
		out[i] = m.Received
	}
	return out
}

// begin applies the part of a call's fault that comes before its effect, and returns how many of
// its messages take effect.
func (q *Queue) begin(ctx context.Context, op Op, messages int) (int, Fault, error) {
	if err := ctx.Err(); err != nil {
		return 0, Fault{}, fmt.Errorf("%s: %w", op, err)
	}
	var f Fault
	if q.set.Faults != nil {
		f = q.set.Faults(Call{op, messages})
	}
	if f.Until != nil {
		select {
		case <-f.Until:
		case <-ctx.Done():
			return 0, f, fmt.Errorf("%s: %w", op, ctx.Err())
		}
	}
	if f.Err != nil && !f.After {
		return 0, f, f.wrap(op)
	}
	if f.Only > 0 {
		messages = min(messages, f.Only)
	}
	return messages, f, nil
}

// wrap returns the error for the caller, or nil.
func (f Fault) wrap(op Op) error {
	if f.Err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", op, f.Err)
}
