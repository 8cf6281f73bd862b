package index

import (
	"sync"

	"github.com/promlake/promlake/internal/query/lru"
)

// Repeats counts reads that recur before many others, and tells when what they read is worth
// keeping. It is safe for concurrent use.
type Repeats struct {
	after int
	mu    sync.Mutex
	reads *lru.Map[*int] // by key
}

// NewRepeats returns counts that begin with 0, of things that are worth keeping after a number of
// reads. It counts those that were read last, whose costs are at most most together.
func NewRepeats(after int, most int64) *Repeats {
	return &Repeats{after: after, reads: lru.New[*int](most)}
}

// Keep counts a read of what key names, and reports whether there were so many that what this one
// reads should be kept. Then the count begins anew.
func (x *Repeats) Keep(key string, cost int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.reads.Get(key)
	if e == nil {
		e = x.reads.Add(key, new(int), cost)
		x.reads.Evict(0)
	}
	if *e.Value++; *e.Value <= x.after {
		return false
	}
	x.reads.Remove(e)
	return true
}
