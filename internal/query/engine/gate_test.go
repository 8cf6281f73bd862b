package engine

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// wait returns once n queries wait at the gate.
func (g *gate) wait(n int) {
	for g.queued() != n {
		// The waiters are goroutines on their way to the queue.
		runtime.Gosched()
	}
}

// TestGateTakesTurns lets one tenant queue up before two others, and finds them let in by turns.
func TestGateTakesTurns(t *testing.T) {
	g := newGate(1)
	require.NoError(t, g.enter(t.Context(), "a"))
	var order []string
	var done sync.WaitGroup
	for i, tenant := range []string{"a", "a", "a", "b", "b", "c"} {
		done.Go(func() {
			if err := g.enter(t.Context(), tenant); err != nil {
				t.Error(err)
				return
			}
			order = append(order, tenant) // by who is in
			g.leave(tenant)
		})
		g.wait(i + 1)
	}
	g.leave("a")
	done.Wait()
	require.Equal(t, []string{"a", "b", "c", "a", "b", "a"}, order)
	require.Zero(t, g.running)
}

// TestGateForgetsWhoLeft cancels waiters, one of them as it is let in, and finds no place lost.
func TestGateForgetsWhoLeft(t *testing.T) {
	g := newGate(1)
	require.NoError(t, g.enter(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	for range 2 {
		go func() { failed <- g.enter(ctx, "b") }()
	}
	g.wait(2)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.ErrorIs(t, <-failed, context.Canceled)
	require.Zero(t, g.queued())
	require.Empty(t, g.turns)

	w := g.line("b") // in the queue
	g.leave("a")     // lets it in
	g.quit("b", w)   // it was cancelled at the same time
	require.Zero(t, g.running)
	require.ErrorIs(t, g.enter(ctx, "b"), context.Canceled)
	require.NoError(t, g.enter(t.Context(), "b"))
}

// TestGateKeepsAPlaceForOthers: one tenant cannot occupy all places.
func TestGateKeepsAPlaceForOthers(t *testing.T) {
	g := newGate(3)
	running := func(w waiter) bool {
		if w == nil {
			return true
		}
		select {
		case <-w:
			return true
		default:
			return false
		}
	}
	first, second, third := g.line("a"), g.line("a"), g.line("a")
	require.True(t, running(first) && running(second))
	require.False(t, running(third))
	other, more := g.line("b"), g.line("c")
	require.True(t, running(other))
	require.False(t, running(more))
	g.leave("b")
	require.False(t, running(third), "a has as many as it may")
	require.True(t, running(more))
	g.leave("a")
	require.True(t, running(third))
	for _, tenant := range []string{"a", "a", "c"} {
		g.leave(tenant)
	}
	require.Zero(t, g.running)
	require.Empty(t, g.held)
}

// queued returns the number of queries that wait.
func (g *gate) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, q := range g.waiting {
		n += len(q)
	}
	return n
}
