package sim

import (
	"slices"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/tests/support/memstore"
)

// writeQueue is the queue before the store. It delivers any message, at any time, any number of
// times.
type writeQueue struct {
	w        *world
	skew     time.Duration // of its clock relative to the store's
	messages []*message
	// consumed; they may be delivered again, or moved back from the dead letters
	spent []*message
}

// message is a request on the queue.
type message struct {
	of      *write
	samples []sample
	sent    time.Time // by the queue's clock; it is kept when the message is moved
}

// maxSpent is the maximum number of consumed messages that may be delivered again.
const maxSpent = 8

func newWriteQueue(w *world) *writeQueue {
	return &writeQueue{w: w, skew: time.Duration(w.rng.Int64N(int64(3*time.Second))) - 1500*time.Millisecond}
}

// send puts a request on the queue.
func (q *writeQueue) send(p *proc, x *write, samples []sample) error {
	_, failure, err := (&port{p: p}).turn(p.ctx, memstore.Op("send"), "write-queue")
	if err != nil {
		return err
	}
	w := q.w
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.now.Add(q.skew).Truncate(time.Millisecond)
	x.queued, x.last, x.resent = true, w.steps, sent
	if x.sent.IsZero() {
		x.sent = sent
	}
	q.messages = append(q.messages, &message{x, samples, sent})
	return failure
}

// receive returns a few messages, in any order.
func (q *writeQueue) receive(p *proc) (out []*message) {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	for range 1 + p.rng.IntN(3) {
		from := &q.messages
		if len(q.messages) == 0 || p.rng.IntN(4) == 0 {
			from = &q.spent
		}
		if n := len(*from); n > 0 {
			if m := (*from)[p.rng.IntN(n)]; !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// delete removes messages, unless it fails.
func (q *writeQueue) delete(p *proc, ms []*message) {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	for _, m := range ms {
		if i := slices.Index(q.messages, m); i >= 0 && p.rng.IntN(8) > 0 {
			q.messages = slices.Delete(q.messages, i, i+1)
			q.spent = append(q.spent, m)
			q.spent = q.spent[max(0, len(q.spent)-maxSpent):]
		}
	}
}

// consume writes messages to segments, as the ingest stage does: one per window and period of their
// send times.
func (w *world) consume(p *proc) {
	ms := w.writes.receive(p)
	slices.SortStableFunc(ms, func(a, b *message) int { return a.sent.Compare(b.sent) })
	type group struct {
		window key.Window
		period int64
	}
	var order []group
	groups := map[group][]*message{}
	for _, m := range ms {
		g := group{key.WindowOf(m.samples[0].ts), m.sent.UnixMilli() / key.QueueMillis}
		if w.set.broken == mixesPeriods {
			g.period = 0
		}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], m)
	}
	for _, g := range order {
		in := groups[g]
		merged := map[point]float64{}
		var from []*write
		for _, m := range in {
			from = append(from, m.of)
			for _, s := range m.samples {
				merged[s.point] = s.v
			}
		}
		var samples []sample
		for _, m := range in {
			for _, s := range m.samples {
				if v, ok := merged[s.point]; ok {
					samples = append(samples, sample{s.point, v})
					delete(merged, s.point)
				}
			}
		}
		slices.SortStableFunc(samples, func(a, b sample) int {
			if a.series != b.series {
				return a.series - b.series
			}
			return int(a.ts - b.ts)
		})
		id := identity(p, in[len(in)-1].sent, true)
		if w.set.broken == redeliversAsNew {
			id = identity(p, p.clock(), false)
		}
		if w.put(p, id, from, samples) != nil {
			return
		}
	}
	w.writes.delete(p, ms)
}
