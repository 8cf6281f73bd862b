package index

import (
	"sync"

	"github.com/promlake/promlake/internal/base/memory"
)

// Often counts reads that recur, and tells when one of them should do more for those that follow:
// read a whole series table in place of some rows, or keep what it reads. It is safe for concurrent
// use.
type Often struct {
	after  int
	mu     sync.Mutex
	counts *memory.LRU[string, *int] // by key
}

const (
	// MaxOften is the number of things whose reads are counted, where each costs 1.
	MaxOften = 64 << 10
	// WholeAfter is the number of reads of a part of series tables, and of samples, that cost about as
	// much as the whole (docs/decisions/030-kept-samples.md).
	WholeAfter = 16
)

// NewOften returns counts that begin with 0, and for which a number of reads is enough. It counts
// what was read last, whose costs are at most most together.
func NewOften(after int, most int64) *Often {
	return &Often{after: after, counts: memory.NewLRU[string, *int](most)}
}

// Enough counts a read of what key names. It reports whether there were enough reads to make more
// work than this one needs worthwhile, and then counts from 0 again.
func (o *Often) Enough(key string, cost int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.counts.Get(key)
	if e == nil {
		e = o.counts.Add(key, new(int), cost)
		o.counts.Evict(0)
	}
	if *e.Value++; *e.Value <= o.after {
		return false
	}
	o.counts.Remove(e)
	return true
}
