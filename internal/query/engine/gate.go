package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate bounds the number of queries that run at once. Tenants take turns in admission, and the
// queries of one tenant are admitted in the order of their arrival, so that a tenant with many
// queries does not delay one with few. A tenant may run all queries but one, so that slow queries
// of one tenant leave a place to the others. It is safe for concurrent use.
type gate struct {
	size int

	mu      sync.Mutex
	running int
	held    map[string]int      // running, by tenant; no zeros
	waiting map[string][]waiter // by tenant; no empty ones
	turns   []string            // the keys of waiting, the next one first
}

// waiter is closed when its query may run.
type waiter chan struct{}

func newGate(size int) *gate {
	return &gate{size: size, held: map[string]int{}, waiting: map[string][]waiter{}}
}

// enter waits for a place, which leave gives back. If ctx ends first it returns ctx's error.
func (g *gate) enter(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := g.line(tenant)
	if w == nil {
		return nil
	}
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		g.quit(tenant, w)
		return ctx.Err()
	}
}

// patience is how long a query keeps its place while it waits for its client.
const patience = time.Second

// idle calls fn, in which a query that has a place waits for its client. If that takes long,
// another query gets the place, and this one waits for one again, unless ctx ends.
func (g *gate) idle(ctx context.Context, tenant string, fn func()) {
	left := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		g.leave(tenant)
		close(left)
	})
	fn()
	if t.Stop() {
		return
	}
	<-left
	if g.enter(ctx, tenant) != nil { // the query ends, and gives a place back
		g.mu.Lock()
		defer g.mu.Unlock()
		g.take(tenant)
	}
}

// line takes a place and returns nil, or puts a waiter at the end of its tenant's queue.
func (g *gate) line(tenant string) waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free(tenant) {
		g.take(tenant)
		return nil
	}
	w := make(waiter)
	if len(g.waiting[tenant]) == 0 {
		g.turns = append(g.turns, tenant)
	}
	g.waiting[tenant] = append(g.waiting[tenant], w)
	return w
}

// free reports whether a query of a tenant may run now. The caller holds mu.
func (g *gate) free(tenant string) bool {
	return g.running < g.size && g.held[tenant] < max(1, g.size-1)
}

// take counts a query of a tenant that runs from now on. The caller holds mu.
func (g *gate) take(tenant string) {
	g.running++
	g.held[tenant]++
}

// leave gives back the place of a tenant's query.
func (g *gate) leave(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(tenant)
}

// pass is leave with mu held. It admits the first query of the tenant whose turn it is.
func (g *gate) pass(tenant string) {
	g.running--
	if g.held[tenant]--; g.held[tenant] == 0 {
		delete(g.held, tenant)
	}
	i := slices.IndexFunc(g.turns, g.free)
	if i < 0 {
		return
	}
	next := g.turns[i]
	g.take(next)
	queue := g.waiting[next]
	g.turns = slices.Delete(g.turns, i, i+1)
	close(queue[0])
	if queue = queue[1:]; len(queue) == 0 {
		delete(g.waiting, next)
		return
	}
	g.waiting[next] = queue
	g.turns = append(g.turns, next)
}

// quit takes a waiter out of its queue, or gives its place back if it got one meanwhile.
func (g *gate) quit(tenant string, w waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[tenant], w)
	if i < 0 {
		g.pass(tenant)
		return
	}
	g.waiting[tenant] = slices.Delete(g.waiting[tenant], i, i+1)
	if len(g.waiting[tenant]) == 0 {
		delete(g.waiting, tenant)
		g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == tenant })
	}
}
