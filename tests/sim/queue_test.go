package sim

import (
	"context"
	"fmt"

	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/store/queue"
)

// jobs is the queue between planners and workers. It delivers any message, at any time, any number
// of times.
type jobs struct {
	w      *world
	bodies []string
}

// maxJobs is the maximum number of waiting messages; older ones are lost.
const maxJobs = 12

// Send implements queue.Sender. Messages are lost without an error at times, or kept although there
// was one.
func (q *jobs) Send(_ context.Context, ms ...queue.Message) error {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	for _, m := range ms {
		if n := q.w.rng.IntN(20); n > 0 || q.w.set.calm {
			q.bodies = append(q.bodies, m.Body)
		}
	}
	q.bodies = q.bodies[max(0, len(q.bodies)-maxJobs):]
	if q.w.rng.IntN(20) == 0 && !q.w.set.calm {
		return fmt.Errorf("send: %w", errFault)
	}
	return nil
}

// take returns any message, and sometimes keeps it for another delivery. "" means none.
func (q *jobs) take() string {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	if len(q.bodies) == 0 {
		return ""
	}
	i := q.w.rng.IntN(len(q.bodies))
	body := q.bodies[i]
	if q.w.rng.IntN(3) > 0 {
		q.bodies = append(q.bodies[:i:i], q.bodies[i+1:]...)
	}
	return body
}

// plan runs ticks of a planner.
func (w *world) plan(p *proc, to queue.Sender, ticks int) {
	s := w.stage(p)
	for range ticks {
		r, err := s.Dispatch(p.ctx, to)
		if err != nil && w.set.calm {
			w.fail("%s fails undisturbed: %w", p.name, err)
			return
		}
		w.count(compact.Report{Garbage: r.Garbage})
	}
}

// work runs the job of a message.
func (w *world) work(p *proc, body string) {
	if body == "" {
		return
	}
	r, err := w.stage(p).Work(p.ctx, []byte(body))
	if w.set.calm && (err != nil || r.Outcome == compact.Failed) {
		w.fail("%s fails undisturbed: %w, %w", p.name, err, r.Err)
	}
	w.count(compact.Report{Jobs: []compact.Result{r}})
}

// handOut runs a tick with all its workers, one after another.
func (w *world) handOut(p *proc) {
	mine := &jobs{w: w}
	w.plan(p, mine, 1)
	for _, body := range mine.bodies {
		w.work(p, body)
	}
}
