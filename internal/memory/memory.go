// Package memory keeps a process within one limit of memory. Whoever is about to allocate much
// acquires the bytes first and is refused beyond the limit; work whose memory nobody can count
// beforehand is registered, and the most expensive is ended when the process was measured above the
// limit.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Flag is the setting that an Error names.
const Flag = "--memory-limit"

// ErrMemory is what every error of a Budget is.
var ErrMemory = errors.New("the process is at its memory limit")

// Error says that memory was refused, or that work was ended because of it. It is ErrMemory.
type Error struct {
	Limit  int64 // bytes
	Needed int64 // bytes of the process, those that were asked for included
	Ended  bool  // the work had begun
}

// Error implements error.
func (e *Error) Error() string {
	what := "refused"
	if e.Ended {
		what = "ended"
	}
	return fmt.Sprintf("%s: %v of %d bytes, it needs %d; ask for less or later, or raise %s", what, ErrMemory, e.Limit, e.Needed, Flag)
}

// Unwrap returns ErrMemory.
func (*Error) Unwrap() error { return ErrMemory }

// QueryLimit tells the HTTP API of queries that this is a limit.
func (*Error) QueryLimit() bool { return true }

// Probe measures the process.
type Probe struct {
	Usage func() int64 // bytes of memory of the process
	Free  func()       // gives back to the system what is garbage; nil: nothing does
	Tune  func(used int64)
	Now   func() time.Time
}

// Budget is the memory of a process. A nil *Budget has no limit. It is safe for concurrent use.
type Budget struct {
	limit   int64
	probe   Probe
	metrics *meters
	wake    chan struct{} // of Watch

	mu       sync.Mutex
	held     int64 // acquired and not released
	measured int64 // at the time of measuredAt
	since    int64 // acquired after that
	at       time.Time
	freed    time.Time
	works    map[*Work]struct{}
	ended    int           // of works
	room     chan struct{} // closed when bytes are released
	started  uint64        // works so far
}

// New returns a budget of limit bytes; limit 0 returns nil. reg may be nil.
func New(limit int64, p Probe, reg prometheus.Registerer) *Budget {
	if limit <= 0 {
		return nil
	}
	b := &Budget{limit: limit, probe: p, wake: make(chan struct{}, 1), works: map[*Work]struct{}{}, room: make(chan struct{})}
	b.metrics = newMetrics(reg, b)
	return b
}

// Limit returns the limit in bytes, 0 if there is none.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// TryAcquire takes n bytes, which Release gives back, or returns an *Error.
func (b *Budget) TryAcquire(n int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.take(n); err != nil {
		b.refuse()
		return err
	}
	return nil
}

// refuse counts what take refused.
func (b *Budget) refuse() {
	b.metrics.refused.Inc()
	b.rouse()
}

// Acquire is TryAcquire that waits for room until ctx ends. Its error is then an *Error as well.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	for b != nil {
		b.mu.Lock()
		err := b.take(n)
		room := b.room
		b.mu.Unlock()
		if err == nil {
			return nil
		}
		b.rouse()
		retry := time.NewTimer(tick) // what is measured falls without a Release
		select {
		case <-room:
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			b.metrics.refused.Inc()
			return fmt.Errorf("wait for memory: %w: %w", err, ctx.Err())
		}
		retry.Stop()
	}
	return nil
}

// take is TryAcquire with mu held.
func (b *Budget) take(n int64) error {
	b.measure()
	if needed := max(b.held, b.measured+b.since) + n; needed > b.limit {
		return &Error{Limit: b.limit, Needed: needed}
	}
	b.held += n
	b.since += n
	return nil
}

// Release gives n acquired bytes back.
func (b *Budget) Release(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(n)
}

// give is Release with mu held.
func (b *Budget) give(n int64) {
	if b.held -= n; b.held < 0 {
		panic("memory: more bytes released than acquired")
	}
	b.since = max(0, b.since-n)
	close(b.room)
	b.room = make(chan struct{})
}

// measure measures the process unless it was just measured. mu is held.
func (b *Budget) measure() {
	now := b.probe.Now()
	if d := now.Sub(b.at); d >= 0 && d < tick && !b.at.IsZero() {
		return
	}
	b.at, b.since = now, 0
	b.measured = b.probe.Usage()
}
