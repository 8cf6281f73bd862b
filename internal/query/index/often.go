package index

import (
	"sync"

	"github.com/promlake/promlake/internal/query/lru"
)

// Often counts how often parts of larger things were read, such as rows of series tables, and tells
// when the whole would have been worth it. It is safe for concurrent use.
type Often struct {
	after  int
	mu     sync.Mutex
	counts *lru.Map[*int] // by key; each costs 1
}

const (
	// maxOften is the number of things whose reads are counted.
	maxOften = 64 << 10
	// WholeAfter is the number of reads of a part of series tables, and of samples, that cost about as
	// much as the whole (docs/decisions/030-kept-samples.md).
	WholeAfter = 16
)

// NewOften returns counts that begin with 0, of things that are worth reading as a whole after a
// number of reads of parts.
func NewOften(after int) *Often { return &Often{after: after, counts: lru.New[*int](maxOften)} }

// Whole counts a read of a part of what key names, and reports whether there were so many that this
// one should read the whole, for all that follow. Then the count begins anew.
func (o *Often) Whole(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.counts.Get(key)
	if e == nil {
		e = o.counts.Add(key, new(int), 1)
		o.counts.Evict(0)
	}
	if *e.Value++; *e.Value <= o.after {
		return false
	}
	o.counts.Remove(e)
	return true
}
