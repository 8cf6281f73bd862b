package remotewrite

import (
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Generation is what a tenant's writer has learned: label sets, and metadata that is durable. It
// only grows. Its owner replaces it by the next one, which bounds its memory; batches keep the
// generation that they were decoded with.
type Generation struct {
	*Series
	Stored Descriptions // in segments
	Queued Descriptions // in messages of the queue

	number uint32 // of the generation in this process, from 1 on
}

// Series are the label sets of a generation, and of those after it that have them, too.
type Series struct {
	Table   *series.Table
	Order   series.Order    // of Table's label sets; guarded by whoever encodes segments
	Repeats segment.Repeats // of Table's label sets; guarded by the same
	Untimed Untimed         // exemplars of Table's label sets

	Defective atomic.Bool // a panic left it half done; whoever finds it so uses another one

	number  uint32                  // that of the first generation
	dropped map[series.Key]struct{} // keys of series that relabeling drops; guarded by Table's lock

	used  []uint64 // a bit for each label set: it was used since the generation began; guarded as Order is
	inUse int      // bits that are set
}

// mostInUse is the share of the label sets, in quarters, that the next generation takes over all of
// them for.
const mostInUse = 3

// Use notes the label sets that a segment has samples of.
func (s *Series) Use(refs []series.Ref) {
	for _, r := range refs {
		at, bit := int(r/64), uint64(1)<<(r%64)
		if at >= len(s.used) {
			s.used = append(s.used, make([]uint64, at+1-len(s.used))...)
		}
		if s.used[at]&bit == 0 {
			s.used[at] |= bit
			s.inUse++
		}
	}
}

// Next returns the generation after g, in which metadata is written anew. It has the label sets of g
// if most of them were used since g began, so that what others keep by their references stays of
// use. If not, it begins without any, which forgets those of series that have ended. seed is that of
// NewGeneration. Whoever encodes segments calls it.
func (g *Generation) Next(seed uint64) *Generation {
	g.Table.RLock()
	n := g.Table.Len()
	g.Table.RUnlock()
	if 4*g.inUse < mostInUse*n {
		return NewGeneration(seed)
	}
	clear(g.used)
	g.inUse = 0
	return &Generation{Series: g.Series, number: generations.Add(1)}
}

// droppedBytes estimates the memory of a key in Series.dropped.
const droppedBytes = 48

// drops reports whether the series of a key is dropped. The caller holds the table's lock.
func (s *Series) drops(k series.Key) bool {
	_, ok := s.dropped[k]
	return ok
}

// NewGeneration returns an empty generation. Senders must not know the seed of its hashes.
func NewGeneration(seed uint64) *Generation {
	n := generations.Add(1)
	return &Generation{Series: &Series{Table: series.NewTable(seed), number: n}, number: n}
}

// generations counts those of the process, so that a Memo fits into a word.
var generations atomic.Uint32

// Bytes estimates the memory of what was learned.
func (g *Generation) Bytes() int64 {
	g.Table.RLock()
	defer g.Table.RUnlock()
	return g.Table.Bytes() + droppedBytes*int64(len(g.dropped)) + g.Stored.size() + g.Queued.size() + g.Untimed.size() + g.Repeats.Bytes()
}

// Descriptions are metadata that is durable. They are safe for concurrent use.
type Descriptions struct {
	changes atomic.Uint32 // how often metadata was replaced

	mu       sync.Mutex
	byFamily map[string]segment.Metadata
	bytes    int64 // estimate of their memory
}

// has reports whether this metadata is durable and was not replaced since.
func (d *Descriptions) has(m segment.Metadata) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, ok := d.byFamily[m.Metric]
	return ok && old == m
}

// Note records metadata that is durable now.
func (d *Descriptions) Note(ms []segment.Metadata) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byFamily == nil {
		d.byFamily = map[string]segment.Metadata{}
	}
	for _, m := range ms {
		old, replaced := d.byFamily[m.Metric]
		if old == m {
			continue
		}
		d.bytes += metadataBytes(m) - metadataBytes(old)
		d.byFamily[m.Metric] = m
		if replaced {
			d.changes.Add(1)
		}
	}
}

func (d *Descriptions) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// metadataBytes estimates the memory of an entry of Descriptions; a missing entry takes none.
func metadataBytes(m segment.Metadata) int64 {
	const perEntry = 160
	if m.Metric == "" {
		return 0
	}
	return perEntry + int64(len(m.Metric)+len(m.Type)+len(m.Help)+len(m.Unit))
}
