package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/remotewrite"
)

// group is the requests of one tenant that become durable together. Exactly one of "all of them are in the store" and "err tells why
// that is not known" holds once done is closed.
type group struct {
	batches []*remotewrite.Batch
	charges []*charge // of the batches
	samples int
	opened  time.Time
	done    chan struct{}
	err     error
}

// finish lets the group's requests be answered. The batches are nobody's afterwards.
func (g *group) finish(err error) {
	for i, b := range g.batches {
		b.Release()
		g.charges[i].release()
	}
	g.batches, g.charges, g.err = nil, nil, err
	close(g.done)
}

// pace says when a group is due.
type pace struct {
	wait       time.Duration // longest time that a group waits for company
	gap        time.Duration // least time between the beginnings of two flushes, unless a group is full or has waited
	maxSamples int           // samples that make a group full
}

// minWait is how long a group waits for company that came together lately, however short the interval between flushes is. It ends the wait for
// senders that are gone.
const minWait = 50 * time.Millisecond

func (s *Settings) pace(store objstore.Store) pace {
	gap := s.FlushInterval
	if _, local := store.(objstore.Local); gap == 0 && !local {
		gap = RemoteFlushInterval
	}
	return pace{wait: max(gap, minWait), gap: gap, maxSamples: s.FlushSamples}
}

// collector gathers concurrent requests of one tenant into groups and decides when a group is due:
//
//   - at once, when it is full;
//   - after the gap, when no request that is being received could join it, and it holds half of the requests that were in the stage
//     together lately: one half is flushed while the other is received;
//   - after the longest wait in any case.
//
// So a lone request is answered at once, senders that come together share a segment, and there are at most about 1/gap segments a
// second unless they are full.
type collector struct {
	pace pace
	now  func() time.Time
	wake chan struct{} // capacity 1: the state changed

	mu        sync.Mutex
	open      *group
	receiving int               // requests between enter and leave
	flushing  bool              // the group that was taken last is not done with
	last      time.Time         // when the last flush began
	company   [recentGroups]int // requests in the stage when each of the last groups was taken
	taken     int               // groups so far
	closing   bool
	stopped   error // why no group will be flushed any more; nil while the flusher runs
}

// recentGroups is how many groups tell how many requests are in the stage together.
const recentGroups = 8

// errClosing is the answer to requests that come during shutdown.
var errClosing = errors.New("ingest is shutting down")

func newCollector(p pace, now func() time.Time) *collector {
	return &collector{pace: p, now: now, wake: make(chan struct{}, 1)}
}

// enter announces a request whose batch may come. Each enter is followed by one leave.
func (c *collector) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return errClosing
	}
	c.receiving++
	return nil
}

// leave ends what enter began. If q is not nil, it joins the open group, which is returned and owns
// it from then on.
func (c *collector) leave(q *accepted) *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiving--
	if q != nil && c.stopped != nil {
		q.release()
		g := &group{done: make(chan struct{}), err: c.stopped}
		close(g.done)
		return g
	}
	c.signal()
	if q == nil {
		return nil
	}
	if c.open == nil {
		c.open = &group{opened: c.now(), done: make(chan struct{})}
	}
	c.open.batches, c.open.charges = append(c.open.batches, q.batch), append(c.open.charges, q.charge)
	c.open.samples += remotewrite.TallyOf(q.batch).Samples()
	return c.open
}

// signal lets the flusher look again.
func (c *collector) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close makes every group due at once and refuses new requests.
func (c *collector) close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.signal()
}

// take returns the open group if it is due, else how long to wait before asking again (0: until woken). Whoever takes a group calls
// flushed when it is done.
func (c *collector) take(now time.Time) (*group, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.open
	if g == nil {
		return nil, 0
	}
	due := g.opened.Add(c.pace.wait)
	if early := c.last.Add(c.pace.gap); early.Before(due) && c.receiving == 0 && 2*len(g.batches) >= slices.Max(c.company[:]) {
		due = early
	}
	if wait := due.Sub(now); wait > 0 && g.samples < c.pace.maxSamples && !c.closing {
		return nil, wait
	}
	c.company[c.taken%recentGroups] = len(g.batches) + c.receiving
	c.taken++
	c.open, c.last, c.flushing = nil, now, true
	return g, 0
}

// flushed says that the group that take returned is done with.
func (c *collector) flushed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushing = false
}

// next waits for a group that is due. It returns nil once ctx is done, or when nothing came for
// idle. A wait that is over counts, whatever the clock says.
func (c *collector) next(ctx context.Context, idle time.Duration) *group {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	now := c.now()
	end := now.Add(idle)
	for ctx.Err() == nil {
		g, wait := c.take(now)
		if g != nil {
			return g
		}
		if wait == 0 {
			if wait = end.Sub(now); wait <= 0 {
				return nil
			}
		}
		timer.Reset(wait)
		over := now.Add(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
			now = over
		case <-c.wake:
		}
		if t := c.now(); t.After(now) {
			now = t
		}
	}
	return nil
}

// stop says that nobody flushes any more: every batch that still comes fails with err, and so shall the open group, which it
// returns if there is one.
func (c *collector) stop(err error) *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.open
	c.open, c.closing, c.stopped = nil, true, err
	return g
}

// retire forbids further requests if none is under way, and says whether it did.
func (c *collector) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receiving > 0 || c.open != nil {
		return false
	}
	c.closing = true
	return true
}

// idle says whether no request is under way, none waits, and no group is being flushed.
func (c *collector) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.receiving == 0 && c.open == nil && !c.flushing
}
