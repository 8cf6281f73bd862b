package engine

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the number of queries that run at once. Tenants take turns in admission, and the
// queries of one tenant are admitted in the order of their arrival, so that a tenant with many
// queries does not delay one with few. It is safe for concurrent use.
type gate struct {
	size int

	mu      sync.Mutex
	running int
	waiting map[string][]waiter // by tenant; no empty ones
	turns   []string            // the keys of waiting, the next one first
}

// waiter is closed when its query may run.
type waiter chan struct{}

func newGate(size int) *gate { return &gate{size: size, waiting: map[string][]waiter{}} }

// enter waits for a place, which leave gives back. If ctx ends first it returns ctx's error.
func (g *gate) enter(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := g.line(tenant)
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		g.quit(tenant, w)
		return ctx.Err()
	}
}

// line takes a place or puts a waiter at the end of its tenant's queue. No query waits while a
// place is free.
func (g *gate) line(tenant string) waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := make(waiter)
	if g.running < g.size {
		g.running++
		close(w)
		return w
	}
	if len(g.waiting[tenant]) == 0 {
		g.turns = append(g.turns, tenant)
	}
	g.waiting[tenant] = append(g.waiting[tenant], w)
	return w
}

// leave gives a place to the first query of the tenant whose turn it is.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

// pass is leave with mu held.
func (g *gate) pass() {
	if len(g.turns) == 0 {
		g.running--
		return
	}
	next := g.turns[0]
	queue := g.waiting[next]
	g.turns = g.turns[1:]
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
		g.pass()
		return
	}
	g.waiting[tenant] = slices.Delete(g.waiting[tenant], i, i+1)
	if len(g.waiting[tenant]) == 0 {
		delete(g.waiting, tenant)
		g.turns = slices.DeleteFunc(g.turns, func(t string) bool { return t == tenant })
	}
}
