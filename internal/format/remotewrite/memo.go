package remotewrite

import (
	"sync/atomic"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Memo keeps what a generation knows of a series, or of metadata, for a sender that has an object of
// its own for each of them. The zero Memo knows nothing. It is safe for concurrent use.
type Memo struct {
	// word is the number of the Series or, for metadata, of the generation << 32 | what it knows: the
	// reference of the series, NoRef if relabeling drops it, or the changes of the durable metadata at
	// a time when this was there.
	word atomic.Uint64
}

// Known is what a Memo knew at a time. It spares a sender that had the Memo at hand a while ago an
// access to its memory. The zero Known is nothing.
type Known uint64

// Known returns what the memo knows.
func (m *Memo) Known() Known { return Known(m.word.Load()) }

// of returns what was known of what has a number.
func (k Known) of(number uint32) (what uint32, ok bool) { return uint32(k), uint32(k>>32) == number }

// of returns what the memo knows of what has a number.
func (m *Memo) of(number uint32) (what uint32, ok bool) { return m.Known().of(number) }

func (m *Memo) note(number, what uint32) { m.word.Store(uint64(number)<<32 | uint64(what)) }

// Remembers reports whether series may be given by memos: the labels of the rules make them other
// series.
func (c *Collector) Remembers() bool { return len(c.d.Labels) == 0 }

// Recall is Series for a series with a memo instead of a key. k is what the memo knew before.
func (c *Collector) Recall(m *Memo, k Known) (known bool, err error) {
	if err := c.d.Reserve(0); err != nil {
		return false, err
	}
	c.begin, c.end, c.memo = c.end, c.d.Batch.Mark(), m
	if c.begin == c.end {
		return true, nil
	}
	number := c.d.Batch.Generation.Series.number
	ref, ok := k.of(number)
	if !ok {
		ref, ok = m.of(number)
	}
	if !ok || series.Ref(ref) == NoRef {
		return false, nil
	}
	c.d.Batch.Assign(c.begin, c.end, series.Ref(ref))
	return true, nil
}

// Described is Describes for metadata with a memo, which spares it the look-up.
func (c *Collector) Described(memo *Memo, m segment.Metadata) bool {
	g := c.d.Batch.Generation
	// Read first: what is noted meanwhile may replace what the look-up finds.
	changes := c.d.durable.changes.Load()
	if then, ok := memo.of(g.number); ok && then == changes {
		return true
	}
	if !c.d.durable.has(m) {
		return false
	}
	memo.note(g.number, changes)
	return true
}
