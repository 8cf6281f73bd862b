package compactapp

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/store/queue"
)

// Path is the path of requests for a cycle (POST).
const Path = "/-/compact"

// invoked compacts on demand: on a request, on a schedule, or on messages that hold jobs. It
// implements process.Stage, process.Scheduled and process.Consumer.
type invoked struct {
	compact *compact.Stage
	queue   queue.Sender // takes the jobs of a tick; nil: they are done at once

	ctx    context.Context // ends when the stage drains
	cancel context.CancelFunc
	cycles sync.Mutex // held while a cycle runs
}

// OnRequest returns the builder of a stage that runs one cycle for each request to Path and answers
// with its totals. A request that arrives while a cycle runs is refused, because that cycle does
// its work. In a function, the stage also runs on schedules and executes jobs that arrive as
// messages. The queue receives no request before the first tick.
func OnRequest(s Settings, w Workers) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		s.QueuedWrites = w.Queued
		c, err := newStage(s, p)
		if err != nil {
			return nil, err
		}
		i := &invoked{compact: c}
		if w.QueueURL != "" {
			if i.queue, err = sqsqueue.Open(w.QueueURL, p.Registry); err != nil {
				return nil, fmt.Errorf("start compaction: %w", err)
			}
		}
		i.ctx, i.cancel = context.WithCancel(context.Background())
		return i, nil
	}
}

// Routes implements process.Stage.
func (s *invoked) Routes() []process.Route {
	return []process.Route{{Pattern: "POST " + Path, Name: Path, Access: auth.Operate, Handler: s}}
}

// ServeHTTP answers 200 with the Totals of the cycle, 409 while another cycle runs, and 500 with
// the error and the Totals of the cycle's finished part. A cycle continues when its client
// disconnects.
func (s *invoked) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !s.cycles.TryLock() {
		process.Reply{Status: "error", Error: "a cycle is running"}.Send(w, http.StatusConflict)
		return
	}
	defer s.cycles.Unlock()
	r, err := s.compact.Cycle(s.ctx)
	var done Totals
	done.add(&r)
	if err != nil {
		process.Reply{Status: "error", Error: err.Error(), Data: &done}.Send(w, http.StatusInternalServerError)
		return
	}
	process.Reply{Status: "success", Data: &done}.Send(w, http.StatusOK)
}

// Drain implements process.Stage: a cycle under way is dropped and its request answered.
func (s *invoked) Drain(context.Context) error {
	s.cancel()
	return nil
}

// Close implements process.Stage.
func (s *invoked) Close() error {
	s.cancel()
	return nil
}

// Tick does the work of a scheduled time: it sends the jobs to workers or, without a queue,
// executes them. A tick without a queue that begins while a cycle runs does nothing, because that
// cycle does its work.
func (s *invoked) Tick(ctx context.Context, _ time.Time) error {
	ctx, stop := process.Until(ctx, s.ctx)
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
	ctx, stop := process.Until(ctx, s.ctx)
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

// Totals are the sums of what cycles did. Sizes are bytes.
type Totals struct {
	Jobs           int64 `json:"jobs"`      // that were done
	Conflicts      int64 `json:"conflicts"` // that another compactor was faster with
	Failed         int64 `json:"failed"`
	SamplesRead    int64 `json:"samples_read"`
	SamplesWritten int64 `json:"samples_written"`
	SamplesDeleted int64 `json:"samples_deleted"`
	BytesRead      int64 `json:"bytes_read"`
	BytesWritten   int64 `json:"bytes_written"`
	ObjectsRemoved int64 `json:"objects_removed"` // garbage
	BytesRemoved   int64 `json:"bytes_removed"`
}

// add adds what a cycle did.
func (t *Totals) add(r *compact.Report) {
	t.Jobs, t.Conflicts, t.Failed = t.Jobs+int64(r.Of(compact.Done)), t.Conflicts+int64(r.Of(compact.Conflict)), t.Failed+int64(r.Of(compact.Failed))
	for i := range r.Jobs {
		j := &r.Jobs[i]
		t.SamplesRead, t.BytesRead, t.BytesWritten = t.SamplesRead+j.Read, t.BytesRead+j.BytesRead, t.BytesWritten+j.BytesWritten
		if j.Outcome == compact.Done {
			t.SamplesWritten, t.SamplesDeleted = t.SamplesWritten+j.Written, t.SamplesDeleted+j.Deleted
		}
	}
	for _, n := range []compact.Count{r.Garbage.Segments, r.Garbage.Blocks, r.Garbage.Answers, r.Garbage.Manifests} {
		t.ObjectsRemoved, t.BytesRemoved = t.ObjectsRemoved+n.Objects, t.BytesRemoved+n.Bytes
	}
}
