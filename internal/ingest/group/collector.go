// Package group gathers concurrent requests of a tenant into groups that become durable together, and
// turns batches into the rows of segments.
package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
)

// Request is what was accepted of a request, and its share of the memory for requests in flight.
type Request struct {
	Batch  *remotewrite.Batch
	Charge *body.Charge
}

// Release gives the memory of the request back.
func (r Request) Release() {
	r.Batch.Release()
	r.Charge.Release()
}

// Group is the requests of one tenant that become durable together.
type Group struct {
	Batches []*remotewrite.Batch
	Samples int

	charges []*body.Charge // of the batches
	opened  time.Time
	done    chan struct{}
	err     error // set before done is closed; nil: all of them are durable
}

func (g *Group) join(r Request) {
	g.Batches, g.charges = append(g.Batches, r.Batch), append(g.charges, r.Charge)
	g.Samples += remotewrite.TallyOf(r.Batch).Samples()
}

// Finish releases the group's requests, which are then answered. err is nil if they are durable,
// otherwise the reason why this is not known.
func (g *Group) Finish(err error) {
	for i, b := range g.Batches {
		Request{b, g.charges[i]}.Release()
	}
	g.Batches, g.charges, g.err = nil, nil, err
	close(g.done)
}

// Wait returns the error that the group was finished with, or that ctx ended before that.
func (g *Group) Wait(ctx context.Context) error {
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return fmt.Errorf("wait for flush: %w", ctx.Err())
	}
}

// Pace configures when a group is due.
type Pace struct {
	Wait       time.Duration // longest time that a group waits for other requests
	Gap        time.Duration // least time between the beginnings of two flushes, unless a group is full or has waited
	MaxSamples int           // samples that make a group full
}

// smallSamples is the size (samples) below which a group is small: the fixed part of a flush is then
// a large part of its processor time (decision 002).
const smallSamples = 10_000

// smallWait is how long a small group waits for its usual senders, in durations of the last flush.
// They mostly come within one or two; it bounds the wait for those that do not come.
const smallWait = 4

// Collector gathers concurrent requests of one tenant into groups and decides when a group is due:
//
//   - at once, when it is full;
//   - after the gap since the last flush began, when no request is being received that could join
//     it, and it holds at least half of the recent maximum of requests that were in the stage
//     together: one half is flushed while the other half is received;
//   - if it is small and holds less than that maximum, only when smallWait times as much time has
//     passed since the last flush ended as that flush took: its senders, who were answered then,
//     may join;
//   - after the longest wait in any case.
//
// So a lone request is answered at once, requests that arrive together share a segment, and there
// are at most about 1/gap segments a second unless they are full.
type Collector struct {
	pace Pace
	now  func() time.Time
	wake chan struct{} // capacity 1: the state changed

	mu         sync.Mutex
	open       *Group
	receiving  int               // requests that have entered, and neither left nor joined
	flushing   bool              // the group that was taken last is not done with
	last       time.Time         // when the last flush began
	ended      time.Time         // when the last flush ended
	concurrent [recentGroups]int // requests in the stage when each of the last groups was taken
	taken      int               // groups so far
	closing    bool
	stopped    error // why no group will be flushed any more; nil while the flusher runs
}

// recentGroups is the number of groups from which the number of concurrent requests is estimated.
const recentGroups = 8

// ErrClosing is the answer to requests that come during shutdown.
var ErrClosing = errors.New("ingest is shutting down")

// NewCollector returns a collector without requests.
func NewCollector(p Pace, now func() time.Time) *Collector {
	return &Collector{pace: p, now: now, wake: make(chan struct{}, 1)}
}

// Enter announces a request, which may join a group. Each Enter is followed by one Leave or Join.
func (c *Collector) Enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosing
	}
	c.receiving++
	return nil
}

// Leave ends what Enter began, without joining a group.
func (c *Collector) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiving--
	c.signal()
}

// Join ends what Enter began: the request joins the open group, which is returned and owns it from
// then on.
func (c *Collector) Join(r Request) *Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receiving--
	if c.stopped != nil {
		g := &Group{done: make(chan struct{})}
		g.join(r)
		g.Finish(c.stopped)
		return g
	}
	if c.open == nil {
		c.open = &Group{opened: c.now(), done: make(chan struct{})}
	}
	c.open.join(r)
	c.signal()
	return c.open
}

// signal lets the flusher look again.
func (c *Collector) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Close makes every group due at once and refuses new requests.
func (c *Collector) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.signal()
}

// take returns the open group if it is due, otherwise the time to wait before the next call (0:
// until woken). The caller that gets a group calls Flushed when it is done.
func (c *Collector) take(now time.Time) (*Group, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.open
	if g == nil {
		return nil, 0
	}
	due := g.opened.Add(c.pace.Wait)
	if usual := slices.Max(c.concurrent[:]); c.receiving == 0 && 2*len(g.Batches) >= usual {
		early := c.last.Add(c.pace.Gap)
		back := c.ended.Add(smallWait * c.ended.Sub(c.last))
		if g.Samples < smallSamples && len(g.Batches) < usual && back.After(early) {
			early = back
		}
		if early.Before(due) {
			due = early
		}
	}
	if wait := due.Sub(now); wait > 0 && g.Samples < c.pace.MaxSamples && !c.closing {
		return nil, wait
	}
	c.concurrent[c.taken%recentGroups] = len(g.Batches) + c.receiving
	c.taken++
	c.open, c.last, c.flushing = nil, now, true
	return g, 0
}

// Flushed ends the flush of the group that Next returned last.
func (c *Collector) Flushed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushing, c.ended = false, c.now()
}

// Next waits for a group that is due. It returns nil once ctx is done, or when no group was open
// for the duration idle. The end of a timer counts even if the clock shows an earlier time.
func (c *Collector) Next(ctx context.Context, idle time.Duration) *Group {
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

// Stop ends flushing: every later batch fails with err. It returns the open group, if there is one,
// which the caller fails with err too.
func (c *Collector) Stop(err error) *Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.open
	c.open, c.closing, c.stopped = nil, true, err
	return g
}

// Retire refuses further requests if none is in progress, and reports whether it did.
func (c *Collector) Retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receiving > 0 || c.open != nil {
		return false
	}
	c.closing = true
	return true
}

// Idle reports whether no request is in progress or waits, and no group is being flushed.
func (c *Collector) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.receiving == 0 && c.open == nil && !c.flushing
}
