package body

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/memory"
)

// Budget shares the bytes of max-inflight-bytes among the requests of all tenants. A request is
// charged for its body as it arrives, then for what the body becomes, until it is acknowledged.
// Four rules keep one sender from starving the others:
//
//   - the sum of all charges never exceeds the limit;
//   - a tenant with several requests in flight may take no more than twice what stays free: one
//     tenant leaves a third to the others, two leave a fifth, and so on;
//   - bodies that are still arriving may take no more than a quarter, shared by the same rule; the
//     oldest of them is exempt;
//   - only requests whose body is not decompressed yet wait, the oldest first.
//
// The oldest body can grow as soon as complete requests have been written, so requests that hold a
// part of what they need cannot stop each other for good.
type Budget struct {
	limit   int64
	process *memory.Budget // of the whole process, from which the bytes are taken, too; nil: it has no limit
	bytes   prometheus.Gauge

	mu       sync.Mutex
	used     int64
	arriving int64
	tenants  map[string]int64 // bytes that each holds
	bodies   []*Charge        // that are arriving, the oldest first
	waiting  []*waiter        // in the order of their charges' admission
	admitted uint64
}

const (
	tenantFactor = 2 // a tenant's bytes to what stays free
	bodiesPart   = 4 // the limit to what arriving bodies may take of it
)

// Charge is what one request holds. One goroutine at a time uses it.
type Charge struct {
	budget   *Budget
	tenant   string
	number   uint64 // in the order of admission
	bytes    int64  // guarded by Budget.mu
	claimed  int64  // what of them the process's budget has; guarded by Budget.mu
	arriving bool   // its body is incomplete or not decompressed; guarded by Budget.mu
}

// waiter is a charge that waits for more bytes.
type waiter struct {
	charge  *Charge
	more    int64
	whole   bool // the body is complete
	granted chan struct{}
}

// BusyError reports that the requests in flight leave no room for another; the answer is 503.
type BusyError struct {
	limit, held int64
	tenant      string
	process     error // the memory of the whole process is used up, rather than that for requests in flight
}

func (e *BusyError) Unwrap() error { return e.process }

func (e *BusyError) Error() string {
	if e.process != nil {
		return e.process.Error()
	}
	return fmt.Sprintf("too many bytes in flight: the limit is %d bytes (max-inflight-bytes), tenant %s holds %d of them; try again", e.limit, e.tenant, e.held)
}

// NewBudget returns a budget of limit bytes. The gauge shows how many are in use.
func NewBudget(limit int64, process *memory.Budget, bytes prometheus.Gauge) *Budget {
	return &Budget{limit: limit, process: process, bytes: bytes, tenants: map[string]int64{}}
}

// Admit returns the charge of a request whose body arrives. It holds nothing yet, and must be
// released.
func (b *Budget) Admit(tenant string) *Charge {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.admitted++
	c := &Charge{budget: b, tenant: tenant, number: b.admitted, arriving: true}
	b.bodies = append(b.bodies, c)
	return c
}

// claim takes more bytes for a charge, or returns an error that names the rule that forbids it. The
// caller holds b.mu.
func (b *Budget) claim(c *Charge, more int64, whole bool) error {
	free := b.limit - b.used
	held := b.tenants[c.tenant]
	if held == c.bytes {
		held = 0 // its only request
	}
	if c.arriving && !whole && b.bodies[0] != c {
		free = min(free, b.limit/bodiesPart-b.arriving)
	}
	if more > free || held > 0 && held+more > tenantFactor*(free-more) {
		return &BusyError{limit: b.limit, held: b.tenants[c.tenant], tenant: c.tenant}
	}
	if err := b.process.TryAcquire(more); err != nil {
		return &BusyError{process: err}
	}
	c.claimed += more
	b.take(c, more)
	if whole {
		b.arrived(c)
	}
	return nil
}

// take charges more bytes, fewer if more is negative. The caller holds b.mu.
func (b *Budget) take(c *Charge, more int64) {
	b.used += more
	c.bytes += more
	if c.arriving {
		b.arriving += more
	}
	if back := min(-more, c.claimed); back > 0 {
		c.claimed -= back
		b.process.Release(back)
	}
	if b.tenants[c.tenant] += more; b.tenants[c.tenant] == 0 {
		delete(b.tenants, c.tenant)
	}
	b.bytes.Set(float64(b.used))
}

// arrived ends the time in which a charge counts among the bodies. The caller holds b.mu.
func (b *Budget) arrived(c *Charge) {
	if !c.arriving {
		return
	}
	c.arriving = false
	b.arriving -= c.bytes
	i := slices.Index(b.bodies, c)
	b.bodies = slices.Delete(b.bodies, i, i+1)
}

// grant serves those who wait and whom the rules allow it now. The caller holds b.mu.
func (b *Budget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if b.claim(w.charge, w.more, w.whole) != nil {
			return false
		}
		close(w.granted)
		return true
	})
}

// Await takes more bytes, for an arriving body or for what a whole one becomes. It waits for them
// no longer than wait (0: any time) and until ctx ends, and returns a *BusyError then.
func (c *Charge) Await(ctx context.Context, wait time.Duration, more int64, whole bool) error {
	b := c.budget
	b.mu.Lock()
	if b.claim(c, more, whole) == nil {
		b.mu.Unlock()
		return nil
	}
	w := &waiter{charge: c, more: more, whole: whole, granted: make(chan struct{})}
	at, _ := slices.BinarySearchFunc(b.waiting, w, func(x, y *waiter) int { return cmp.Compare(x.charge.number, y.charge.number) })
	b.waiting = slices.Insert(b.waiting, at, w)
	b.mu.Unlock()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 {
		return nil // granted at the last moment
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return b.claim(c, more, whole)
}

// Try takes more bytes for a request whose body is complete, if that is possible at once. alone
// means that the request fails although nothing else is in flight, so it will never fit.
func (c *Charge) Try(more int64) (alone bool, err error) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.claim(c, more, true)
	return err != nil && more > b.limit-c.bytes, err
}

// Release gives back all that the charge holds.
func (c *Charge) Release() {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take(c, -c.bytes)
	b.arrived(c)
	b.grant()
}

// Settle makes the charge n bytes, what the request really takes.
func (c *Charge) Settle(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take(c, n-c.bytes)
	b.grant()
}

// Waiting returns the number of requests that wait for bytes.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}
