package memory

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newInts(most int) *Pool[[]int] { return NewPool(most, func(s []int) int { return cap(s) }) }

// TestFits: the smallest value that is large enough is taken, and the smallest one is dropped when
// there are too many.
func TestFits(t *testing.T) {
	p := newInts(3)
	_, ok := p.Get(0)
	require.False(t, ok)
	for _, n := range []int{5, 2, 9, 7} {
		p.Put(make([]int, n))
	}
	for _, x := range []struct{ size, want int }{{6, 7}, {6, 9}, {6, 5}} {
		v, ok := p.Get(x.size)
		require.True(t, ok)
		require.Len(t, v, x.want)
	}
	_, ok = p.Get(0)
	require.False(t, ok)
}

// TestDrops: what nobody takes is dropped after two collections, and what is taken in between is
// not.
func TestDrops(t *testing.T) {
	p := newInts(2)
	p.Put(make([]int, 1))
	p.Put(make([]int, 2))
	p.age()
	v, ok := p.Get(2)
	require.True(t, ok)
	p.Put(v)
	p.age()
	require.Len(t, p.unused, 1)
	v, ok = p.Get(0)
	require.True(t, ok)
	require.Len(t, v, 2)
}

// TestCollections: collections age the values until there are none.
func TestCollections(t *testing.T) {
	p := newInts(2)
	for range 2 {
		p.Put(make([]int, 1))
		require.Eventually(t, func() bool {
			runtime.GC()
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.unused) == 0 && !p.aging
		}, time.Minute, time.Millisecond)
	}
}

// TestOneOwner: a value has one owner at a time.
func TestOneOwner(t *testing.T) {
	p := newInts(4)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 1000 {
				v, ok := p.Get(1)
				if !ok {
					v = make([]int, 1)
				}
				v[0] = i
				runtime.Gosched()
				if v[0] != i {
					t.Error("another one has the value")
				}
				p.Put(v)
			}
		})
	}
	wg.Wait()
}
