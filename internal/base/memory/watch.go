package memory

import (
	"context"
	"math"
	"time"
)

const (
	// tick is the interval of measurements while work runs. Two processors write at most about 2
	// GB/s, so usage grows by at most 20 MB in between.
	tick = 10 * time.Millisecond
	// patience is how long Watch waits for an ended work to stop before it ends the next one.
	patience = 200 * time.Millisecond
	// rest is the minimum time between two forced garbage collections.
	rest = time.Second
	// reserveShare is the inverse of the share of the limit that ended work may still allocate
	// until it stops, also on a busy machine, where Watch runs late.
	reserveShare = 10
)

// Watch measures the process until ctx ends. While usage exceeds the limit less a reserve, it ends
// the work that holds the most memory, and further ones until those hold what is above that; of
// equal ones the latest.
func (b *Budget) Watch(ctx context.Context) {
	if b == nil {
		return
	}
	var last time.Time // when the last work was ended
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

// check measures the process and acts on the result. It returns whether to continue measuring, and
// when the last work was ended.
func (b *Budget) check(last time.Time) (bool, time.Time) {
	b.mu.Lock()
	b.measure()
	used, now := b.measured, b.probe.Now()
	reserve := b.limit / reserveShare
	above := used > b.limit-reserve
	var end []*Work
	if above && (b.ended == 0 || now.Sub(last) > patience) {
		for excess := used + reserve - b.limit; excess > 0; {
			w, held := b.largest()
			if w == nil {
				break
			}
			w.ended, last = true, now
			b.ended++
			end = append(end, w)
			if held == 0 { // nor do the others hold anything
				break
			}
			excess -= held
		}
	}
	// The memory of ended work is garbage, which an idle process would not collect.
	free := above && len(end) == 0 && b.ended == 0 && now.Sub(b.freed) > rest && b.probe.Free != nil
	if free {
		b.freed = now
	}
	// While short works follow one another, it goes on: to wake Watch for each of them would take as
	// long as many of them do.
	busy := above || len(b.works) > 0 || b.started != b.seen
	b.seen, b.watched = b.started, busy
	room, outside := b.limit-reserve-used, b.outside
	if !busy {
		room = math.MaxInt64 / 2
	}
	b.mu.Unlock()
	for _, set := range outside {
		set(room)
	}

	if b.probe.Tune != nil {
		b.probe.Tune(used)
	}
	for _, w := range end {
		b.metrics.ended.Inc()
		w.cancel(&Error{Limit: b.limit, Needed: used + reserve, Ended: true})
	}
	if free {
		b.probe.Free()
	}
	return busy, last
}

// largest returns the work to end first and its bytes, or nil if all were ended. The caller holds
// mu.
func (b *Budget) largest() (out *Work, most int64) {
	for w := range b.works {
		if w.ended {
			continue
		}
		if n := w.held(); out == nil || n > most || n == most && w.number > out.number {
			out, most = w, n
		}
	}
	return out, most
}

// wakeWatch wakes Watch.
func (b *Budget) wakeWatch() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
