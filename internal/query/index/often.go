package index

import (
	"sync"

	"github.com/promlake/promlake/internal/query/lru"
)

// Often counts reads that recur, such as those of rows of series tables, and tells when more than
// what they read would have been worth it: the whole table, or to keep it. It is safe for
// concurrent use.
type Often struct {
	after  int
	mu     sync.Mutex
	counts *lru.Map[*int] // by key
}

const (
	// MaxOften is the number of things whose reads are counted, where each costs 1.
	MaxOften = 64 << 10
	// WholeAfter is the number of reads of a part of series tables, and of samples, that cost about as
	// much as the whole (docs/decisions/030-kept-samples.md).
	WholeAfter = 16
)

// NewOften returns counts that begin with 0, of things that are worth it after a number of reads.
// It counts those that were read last, whose costs are at most most together.
func NewOften(after int, most int64) *Often {
	return &Often{after: after, counts: lru.New[*int](most)}
}

// Enough counts a read of what key names, and reports whether there were so many that this one
// should read the whole, or keep what it reads, for all that follow. Then the count begins anew.
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
