// Package memory keeps a process within one limit of memory. Code acquires bytes before large
// allocations, and gets an error beyond the limit. Work whose memory cannot be counted beforehand
// is registered; when the process is measured above the limit, the most expensive work is ended.
package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/promlake/promlake/internal/base/settings"
)

// Flag is the flag that an Error names.
const Flag = "--memory-limit"

// ErrMemory is wrapped by every error of a Budget.
var ErrMemory = errors.New("the process is at its memory limit")

// Error reports that memory was refused, or that work was ended to free memory. It wraps ErrMemory.
type Error struct {
	Limit  int64 // bytes
	Needed int64 // bytes of the process, including those that were requested or that ended work may take
	Ended  bool  // the work had started
}

// Error implements error.
func (e *Error) Error() string {
	what := "refused"
	if e.Ended {
		what = "ended"
	}
	return settings.ForOperator(fmt.Sprintf("%s: %v of %d bytes, it needs %d; request less, retry later, or raise %s", what, ErrMemory, e.Limit, e.Needed, Flag))
}

// Unwrap returns ErrMemory.
func (*Error) Unwrap() error { return ErrMemory }

// QueryLimit reports that a limit was exceeded, for which the HTTP API of queries answers 422.
func (*Error) QueryLimit() bool { return true }

// Probe provides measurements and controls of the process.
type Probe struct {
	Usage func() int64 // bytes of memory of the process
	Free  func()       // returns garbage to the system; nil: unavailable
	Tune  func(used int64)
	Now   func() time.Time
}

// Budget is the memory budget of a process. A nil *Budget has no limit. It is safe for concurrent
// use.
type Budget struct {
	limit   int64
	probe   Probe
	metrics *meters
	wake    chan struct{} // wakes Watch

	mu       sync.Mutex
	held     int64 // acquired and not released
	measured int64 // usage at the time at
	since    int64 // acquired since then
	at       time.Time
	freed    time.Time
	works    map[*Work]struct{}
	ended    int           // number of works that Watch ended and that still run
	room     chan struct{} // closed when bytes are released; nil: nobody waits for that
	started  uint64        // number of works so far
	seen     uint64        // of these, when Watch measured last
	watched  bool          // Watch measures at the next tick
	outside  []func(room int64)
}

// New returns a budget of limit bytes, or nil if limit is 0. reg may be nil.
func New(limit int64, p Probe, reg prometheus.Registerer) *Budget {
	if limit <= 0 {
		return nil
	}
	b := &Budget{limit: limit, probe: p, wake: make(chan struct{}, 1), works: map[*Work]struct{}{}}
	f := promauto.With(reg)
	gauge := func(name, help string, value func() int64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: "promlake_memory_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("limit_bytes", "Memory that the process may use (--memory-limit).", func() int64 { return b.limit })
	gauge("used_bytes", "Memory that the process uses.", b.probe.Usage)
	gauge("acquired_bytes", "Memory that requests have acquired and not yet released.", func() int64 {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.held
	})
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "promlake_memory_" + name, Help: help})
	}
	b.metrics = &meters{
		refused: counter("refused_total", "Acquisitions of memory that were refused at the limit."),
		ended:   counter("ended_total", "Requests that were ended because the process was above its limit."),
	}
	return b
}

// Outside lets Watch call set with the bytes that there is room for, each time it has measured the
// process: for code whose allocations are neither acquired nor Go's. While no work runs, there is no
// bound.
func (b *Budget) Outside(set func(room int64)) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outside = append(b.outside, set)
}

// Limit returns the limit in bytes, 0 if there is none.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// TryAcquire acquires n bytes, or returns an *Error. The caller must Release them.
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

// refuse counts a refusal.
func (b *Budget) refuse() {
	b.metrics.refused.Inc()
	b.wakeWatch()
}

// Acquire is TryAcquire, but waits for room until ctx ends. Its error wraps an *Error in that case,
// too.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	for b != nil {
		b.mu.Lock()
		err := b.take(n)
		if err == nil {
			b.mu.Unlock()
			return nil
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		b.wakeWatch()
		retry := time.NewTimer(tick) // usage falls without a Release, too
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

// AcquireWithin is Acquire that waits for a limited time. It makes no timer unless it has to wait.
func (b *Budget) AcquireWithin(ctx context.Context, wait time.Duration, n int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	err := b.take(n)
	b.mu.Unlock()
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return b.Acquire(ctx, n)
}

// take is TryAcquire for callers that hold mu. Where Watch would end work, none gets memory.
func (b *Budget) take(n int64) error {
	b.measure()
	needed := max(b.held, b.measured+b.since) + n
	if ending := b.measured + b.limit/reserveShare; ending > b.limit {
		needed = max(needed, ending)
	}
	if needed > b.limit {
		return &Error{Limit: b.limit, Needed: needed}
	}
	b.held += n
	b.since += n
	return nil
}

// Release releases n acquired bytes.
func (b *Budget) Release(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(n)
}

// give is Release for callers that hold mu.
func (b *Budget) give(n int64) {
	if b.held -= n; b.held < 0 {
		panic("memory: more bytes released than acquired")
	}
	b.since = max(0, b.since-n)
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// measure measures the process, at most once per tick. The caller holds mu.
func (b *Budget) measure() {
	now := b.probe.Now()
	if d := now.Sub(b.at); d >= 0 && d < tick && !b.at.IsZero() {
		return
	}
	b.at, b.since = now, 0
	b.measured = b.probe.Usage()
}

// meters are the metrics of a Budget.
type meters struct {
	refused, ended prometheus.Counter
}
