package compactapp

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/aws/lambda"
)

// Tick does the work of a scheduled time: it sends the jobs to workers or, without a queue,
// executes them. A tick without a queue that begins while a cycle runs does nothing, because that
// cycle does its work.
func (s *invoked) Tick(ctx context.Context, _ time.Time) error {
	ctx, stop := s.until(ctx)
	defer stop()
	if s.queue != nil {
		_, err := s.compact.Dispatch(ctx, s.queue)
		return err
	}
	if !s.cycles.TryLock() {
		return nil
	}
	defer s.cycles.Unlock()
	_, err := s.compact.Tick(ctx)
	return err
}

// Consume executes the jobs of a batch one after another. failed are the IDs of the messages from
// the first one that is not done: it is no job message, the stage is draining, or less than half of
// the batch's time was left. The queue delivers them again or moves them to the dead-letter queue.
func (s *invoked) Consume(ctx context.Context, batch []lambda.Message) (failed []string, err error) {
	ctx, stop := s.until(ctx)
	defer stop()
	enough := half(ctx)
	for i, m := range batch {
		if i == 0 || enough() {
			if _, err := s.compact.Work(ctx, []byte(m.Body)); err == nil {
				continue
			}
		}
		for _, left := range batch[i:] {
			failed = append(failed, left.ID)
		}
		return failed, nil
	}
	return nil, nil
}

// until is ctx until the stage drains.
func (s *invoked) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	if s.ctx.Err() != nil {
		cancel() // AfterFunc takes its time
	}
	return ctx, func() { stop(); cancel() }
}

// half returns a function that reports whether at least half of the time from now until the
// context's deadline is left.
func half(ctx context.Context) func() bool {
	end, ok := ctx.Deadline()
	if !ok {
		return func() bool { return ctx.Err() == nil }
	}
	latest := end.Add(-time.Until(end) / 2)
	return func() bool { return ctx.Err() == nil && time.Now().Before(latest) }
}
