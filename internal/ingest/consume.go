package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/ingest/body"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/store/queue"
)

// Consume makes the requests in messages durable: all of a tenant's in one segment per window and
// period of the queue (key.QueueMillis), unless they are more than ConsumeSamples. It returns the
// messages that are to be delivered again: those that cannot be read, so that they become dead
// letters in the end, and those whose samples are not known to be in the store, because a write
// failed or the end of ctx came near. An error is for all of them. A message that is delivered
// again after it was consumed writes its samples again, which changes no answer. Consume releases
// the messages that it returns to the queue of From.
func (s *Stage) Consume(ctx context.Context, ds []queue.Received) (failed []string, err error) {
	working, cancel := early(ctx)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	c := &consumption{stage: s, ctx: working, failed: map[time.Duration][]queue.Received{}}
	c.puts.SetLimit(maxParallelPuts)
	defer func() {
		for _, t := range c.entered {
			t.groups.Leave()
		}
	}()
	for _, ms := range c.byTenant(ds) {
		t, err := s.enter(ms[0].Tenant)
		if errors.Is(err, group.ErrClosing) {
			return nil, errors.Join(err, c.puts.Wait())
		}
		if err != nil {
			c.fail(ms, err)
			continue
		}
		c.entered = append(c.entered, t)
		c.tenant(t, ms)
	}
	if err := c.puts.Wait(); err != nil {
		return nil, err
	}
	for wait, ms := range c.failed {
		for _, m := range ms {
			failed = append(failed, m.ID)
		}
		if s.from == nil {
			continue
		}
		if err := s.from.Release(ctx, wait, ms...); err != nil {
			s.log.Warn("messages stay hidden until the visibility timeout of the queue", "messages", len(ms), "err", err)
		}
	}
	s.met.messages.WithLabelValues("ok").Add(float64(len(ds) - len(failed)))
	return failed, nil
}

const (
	// longestWait bounds the wait before a message that could not be stored is delivered again.
	// With it, the maxReceiveCount of the AWS stack (max-receives) lasts for a day.
	longestWait = 5 * time.Minute
	// unreadableWait is the wait of a message that no try can store. It becomes a dead letter in an
	// hour, which is time enough for the upgrade of a consumer that is older than the sender.
	unreadableWait = 10 * time.Second
)

// early ends a little before ctx does, so that what was done can still be reported.
func early(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(2*time.Second, time.Until(end)/10)))
}

// consumption is one call of Consume.
type consumption struct {
	stage *Stage
	ctx   context.Context
	puts  errgroup.Group

	entered []*tenantIngest

	mu     sync.Mutex
	failed map[time.Duration][]queue.Received // by the wait before their next delivery
}

// parcel is a message that could be read so far.
type parcel struct {
	delivery queue.Received
	*message.Message
	sent time.Time // when the queue got it first
}

// maxQueueAge is the largest age of a message. Deletions apply to what comes from the queue for a
// day longer (catalog.QueueHorizon).
const maxQueueAge = 29 * 24 * time.Hour

// sentAt returns when the queue got a message first. A message that was moved back from the
// dead-letter queue holds this time itself.
func (c *consumption) sentAt(d *queue.Received, e *message.Message) (time.Time, error) {
	sent := d.Sent
	if !e.Sent.IsZero() {
		sent = e.Sent
	}
	if sent.IsZero() {
		return sent, fmt.Errorf("%w: the queue does not say when it was sent", message.ErrUnreadable)
	}
	if age := c.stage.now().Sub(sent); age > maxQueueAge {
		return sent, fmt.Errorf("%w: it was sent %s ago, the limit is %s: what was deleted meanwhile could return", message.ErrUnreadable, age.Round(time.Second), maxQueueAge)
	}
	return sent, nil
}

// period is the number of the queue's period in which the message was sent.
func (p *parcel) period() int64 { return p.sent.UnixMilli() / key.QueueMillis }

// byTenant reads the first lines of messages and groups them by tenant, each in the order in which
// the queue got them: of equal times of a series the sample that came last counts.
func (c *consumption) byTenant(ds []queue.Received) [][]parcel {
	all := make([]parcel, 0, len(ds))
	for _, d := range ds {
		e, err := message.Parse(d.Body)
		if err != nil {
			c.unreadable(d, "", err)
			continue
		}
		sent, err := c.sentAt(&d, e)
		if err != nil {
			c.unreadable(d, e.Tenant, err)
			continue
		}
		all = append(all, parcel{d, e, sent})
	}
	slices.SortStableFunc(all, func(a, b parcel) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), a.sent.Compare(b.sent))
	})
	var out [][]parcel
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].Tenant == all[from].Tenant {
			to++
		}
		out, from = append(out, all[from:to]), to
	}
	return out
}

// unreadable notes a message that this consumer cannot take, however often it is delivered.
func (c *consumption) unreadable(d queue.Received, tenant string, err error) {
	c.stage.met.messages.WithLabelValues("unreadable").Inc()
	c.stage.log.Error("message refused; after its last delivery it is a dead letter", "message", d.ID, "tenant", tenant, "err", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[unreadableWait] = append(c.failed[unreadableWait], d)
}

// fail notes messages that are to be delivered again.
func (c *consumption) fail(ms []parcel, err error) {
	samples := 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		samples += m.Holds.Samples()
		wait := min(time.Second<<min(max(m.delivery.Receives-1, 0), 16), longestWait)
		c.failed[wait] = append(c.failed[wait], m.delivery)
	}
	c.stage.met.messages.WithLabelValues("failed").Add(float64(len(ms)))
	c.stage.log.Error("messages failed; they will be delivered again", "messages", len(ms), "first", ms[0].delivery.ID, "tenant", ms[0].Tenant, "samples", samples, "err", err)
}

// load is the part of a tenant's messages that is flushed together.
type load struct {
	parcels []parcel
	batches []*remotewrite.Batch
	charges []*body.Charge // of the batches
	tally   remotewrite.Tally
}

// tenant takes the messages of one tenant.
func (c *consumption) tenant(t *tenantIngest, ms []parcel) {
	var l load
	for _, m := range ms {
		if n := len(l.parcels); n > 0 && l.parcels[n-1].period() != m.period() {
			c.flush(t, l)
			l = load{}
		}
		q, err := c.read(t, m, len(l.parcels) == 0)
		if is[*body.BusyError](err) && len(l.parcels) > 0 {
			// The load itself holds what the message waits for.
			c.flush(t, l)
			l = load{}
			q, err = c.read(t, m, true)
		}
		switch {
		case err == nil:
			l.parcels, l.batches, l.charges = append(l.parcels, m), append(l.batches, q.Batch), append(l.charges, q.Charge)
			l.tally = l.tally.Plus(m.Holds)
		case is[*body.BusyError](err), c.ctx.Err() != nil:
			c.fail([]parcel{m}, err)
		default:
			c.unreadable(m.delivery, m.Tenant, err)
		}
		if l.tally.Samples() >= c.stage.set.ConsumeSamples {
			c.flush(t, l)
			l = load{}
		}
	}
	if len(l.parcels) > 0 {
		c.flush(t, l)
	}
}

// read decodes a message. If its memory is not free, it waits for that as long as there is time, or
// is refused at once.
func (c *consumption) read(t *tenantIngest, m parcel, wait bool) (q group.Request, err error) {
	if err := c.ctx.Err(); err != nil {
		return q, fmt.Errorf("read message: %w", err)
	}
	s := c.stage
	charge := s.inflight.Admit(m.Tenant)
	defer func() {
		if err != nil {
			charge.Release()
		}
	}()
	estimate := min(m.Memory(), s.set.MaxInflightBytes)
	if wait {
		err = charge.Await(c.ctx, 0, estimate, true)
	} else {
		_, err = charge.Try(estimate)
	}
	if err != nil {
		return q, err
	}
	b, err := m.Decode(t.known.Load().Generation, s.acceptedLimits(), s.set.MaxInflightBytes)
	if err != nil {
		return q, err
	}
	charge.Settle(costRequest + b.Bytes)
	return group.Request{Batch: b, Charge: charge}, nil
}

// learned is metadata that is durable when a load is.
type learned struct {
	generation *remotewrite.Generation
	metadata   []segment.Metadata
}

// flush encodes a load and lets its segments be written while the next load is read.
func (c *consumption) flush(t *tenantIngest, l load) {
	s := c.stage
	begin := s.now()
	ctx, cancel := context.WithTimeout(c.ctx, s.set.FlushTimeout)
	newest := l.parcels[len(l.parcels)-1].sent
	segments, err := t.segments.encode(l.batches, func() (ulid.ULID, bool) { return s.ids.at(newest), true })
	var meta []learned
	for _, b := range l.batches {
		if len(b.Metadata) > 0 {
			meta = append(meta, learned{b.Generation, slices.Clone(b.Metadata)})
		}
		b.Release() // the charges cover the segments, too
	}
	t.rotate()
	c.puts.Go(func() error {
		defer cancel()
		defer func() {
			for _, c := range l.charges {
				c.Release()
			}
		}()
		if err == nil {
			err = t.segments.put(ctx, segments)
		}
		s.met.flushed(l.tally, err, s.now().Sub(begin))
		if err != nil {
			c.fail(l.parcels, err)
			return nil
		}
		for _, d := range meta {
			d.generation.Stored.Note(d.metadata)
		}
		now := s.now()
		for _, p := range l.parcels {
			s.met.queueSeconds.Observe(now.Sub(p.Received).Seconds())
		}
		return nil
	})
}
