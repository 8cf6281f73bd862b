package cost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/queue"
)

// buffered converts requests to messages, and batches of messages to segments. It is both the
// ingest function and the flush function.
type buffered struct {
	sender  *ingest.Stage
	flusher *ingest.Stage
	handler http.Handler
	queue   *fifo
}

func newBuffered(f *Flags, p *part, log *slog.Logger, now func() time.Time) (writer, error) {
	q := &fifo{now: now}
	// The first function has its own store, which stays empty.
	sender, err := newStage(newPart(p.store), log, now, q, func(s *ingest.Settings) { s.Mode, s.QueueURL = ingest.Buffered, "memory" })
	if err != nil {
		return nil, err
	}
	flusher, err := newStage(p, log, now, q, func(s *ingest.Settings) { s.Mode, s.QueueURL = ingest.Buffered, "memory" })
	if err != nil {
		return nil, err
	}
	return &buffered{sender: sender, flusher: flusher, handler: sender.Handler(), queue: q}, nil
}

func (b *buffered) request(ctx context.Context, body []byte) error { return post(ctx, b.handler, body) }

// flush consumes all waiting messages in one invocation of the flush function.
func (b *buffered) flush(ctx context.Context) error {
	ds := b.queue.take()
	if len(ds) == 0 {
		return nil
	}
	failed, err := b.flusher.Consume(ctx, ds)
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%d messages failed", len(failed))
	}
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

func (b *buffered) queued() (bytes, messages int64) { return b.queue.bytes, b.queue.messages }

func (b *buffered) close() error {
	return errors.Join(b.sender.Close(context.Background()), b.flusher.Close(context.Background()))
}

// fifo is a queue that keeps messages until they are received.
type fifo struct {
	now             func() time.Time
	waiting         []queue.Received
	bytes, messages int64
}

// Send implements queue.Sender.
func (q *fifo) Send(_ context.Context, ms ...queue.Message) error {
	for _, m := range ms {
		if err := m.Check(); err != nil {
			return err
		}
		q.messages++
		q.bytes += int64(len(m.Body))
		q.waiting = append(q.waiting, queue.Received{ID: strconv.FormatInt(q.messages, 10), Body: m.Body, Sent: q.now()})
	}
	return nil
}

func (q *fifo) take() []queue.Received {
	ds := q.waiting
	q.waiting = nil
	return ds
}
