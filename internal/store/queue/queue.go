// Package queue defines the guarantees that Promlake needs from a message queue: durable, at least
// once, in no order that a caller relies on.
//
//   - Durable: when Send returns nil, every message is kept until a consumer deletes it or its
//     retention ends.
//   - At least once: a message may be delivered again, even after a consumer has deleted it, and a
//     Send that fails may have put some or all of its messages on the queue.
//
// Package sqsqueue implements it on Amazon SQS; package memqueue is a test double that delivers
// twice or out of order, and fails, on demand.
package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// MaxMessageBytes is the largest body of a message, and of all messages of one request
	// together, in bytes (Amazon SQS, "Message quotas").
	MaxMessageBytes = 1 << 20
	// MaxBatch is the largest number of messages that one request may send, receive or delete
	// (Amazon SQS, "Message quotas").
	MaxBatch = 10
	// ChunkBytes is the unit by which Amazon SQS charges payloads: every started chunk of a request
	// counts as a request.
	ChunkBytes = 64 << 10
)

// ErrTooLarge reports a message of more than MaxMessageBytes. Nothing was sent.
var ErrTooLarge = errors.New("message is too large")

// Message is a message to send.
type Message struct {
	Body string // UTF-8 without control characters but tab, line feed and carriage return
	// Group and Deduplication are for FIFO queues only. Messages of a group are delivered one after
	// another. Of messages with the same deduplication identifier within five minutes, only the
	// first is kept.
	Group, Deduplication string
}

// Received is a message as it was delivered.
type Received struct {
	ID       string // of the message; the same at every delivery
	Handle   string // of this delivery, for Delete and Release
	Body     string
	Group    string    // FIFO queues only
	Sent     time.Time // by the queue's clock
	Receives int       // deliveries so far, this one included
}

// Sender puts messages on a queue.
type Sender interface {
	// Send returns nil only when all messages are durable. After an error, any of them may be on
	// the queue. Errors: ErrTooLarge.
	Send(ctx context.Context, m ...Message) error
}

// Receiver takes messages from a queue.
type Receiver interface {
	// Receive returns up to limit messages (at most MaxBatch), and waits up to wait for the first
	// of them. They are hidden from other consumers for the duration visibility, and are delivered
	// again after it unless they are deleted. An empty result is not an error.
	Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]Received, error)
	// Delete removes messages. Removing one that is gone is not an error.
	Delete(ctx context.Context, m ...Received) error
	// Release lets messages be delivered again after a wait of whole seconds, from now on.
	Release(ctx context.Context, wait time.Duration, m ...Received) error
}

// Check reports a message that no queue takes.
func (m Message) Check() error {
	if len(m.Body) > MaxMessageBytes {
		return fmt.Errorf("%w: it has %d bytes, the limit of the queue is %d", ErrTooLarge, len(m.Body), MaxMessageBytes)
	}
	if m.Body == "" {
		return errors.New("message without a body")
	}
	return nil
}

// Chunks returns the number of chunks that SQS charges for a request with a payload of bytes bytes.
func Chunks(bytes int) int { return max(1, (bytes+ChunkBytes-1)/ChunkBytes) }

// Batches divides messages, in order, into runs that one request can carry.
func Batches(ms []Message) [][]Message {
	var out [][]Message
	from, bytes := 0, 0
	for i, m := range ms {
		if i > from && (i-from == MaxBatch || bytes+len(m.Body) > MaxMessageBytes) {
			out, from, bytes = append(out, ms[from:i]), i, 0
		}
		bytes += len(m.Body)
	}
	if from < len(ms) {
		out = append(out, ms[from:])
	}
	return out
}
