package memory

import (
	"context"
	"time"
)

const (
	// tick is how often the process is measured while something is under way. At 2 GB/s, which is
	// what two processors write at most, 20 MB more are in use after it.
	tick = 10 * time.Millisecond
	// patience is how long one ended work may take to stop before the next one is ended.
	patience = 200 * time.Millisecond
	// rest is the time between two collections of garbage by force.
	rest = time.Second
)

// Watch measures the process until ctx ends. Above the limit it ends the work that holds most, of
// equals the latest.
func (b *Budget) Watch(ctx context.Context) {
	if b == nil {
		return
	}
	var last time.Time // when a work was ended
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for busy := true; ; {
		next := timer.C
		if !busy {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			if busy {
				continue
			}
		case <-next:
		}
		busy, last = b.check(last)
		timer.Reset(tick)
	}
}

// check measures the process and acts. It returns whether to go on measuring, and when a work was
// ended at last.
func (b *Budget) check(last time.Time) (bool, time.Time) {
	b.mu.Lock()
	b.measure()
	used, now := b.measured, b.probe.Now()
	above := used > b.limit
	var end *Work
	if above && (b.ended == 0 || now.Sub(last) > patience) {
		if end = b.largest(); end != nil {
			end.ended, last = true, now
			b.ended++
		}
	}
	// What ended work leaves is garbage, which an idle process would keep.
	free := above && end == nil && b.ended == 0 && now.Sub(b.freed) > rest && b.probe.Free != nil
	if free {
		b.freed = now
	}
	busy := above || len(b.works) > 0
	b.mu.Unlock()

	if b.probe.Tune != nil {
		b.probe.Tune(used)
	}
	if end != nil {
		b.metrics.ended.Inc()
		end.cancel(&Error{Limit: b.limit, Needed: used, Ended: true})
	}
	if free {
		b.probe.Free()
	}
	return busy, last
}

// largest returns the work to end first, nil if all are ended. mu is held.
func (b *Budget) largest() (out *Work) {
	var most int64
	for w := range b.works {
		if w.ended {
			continue
		}
		n := w.bytes
		if out == nil || n > most || n == most && w.number > out.number {
			out, most = w, n
		}
	}
	return out
}

// rouse makes Watch look.
func (b *Budget) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
