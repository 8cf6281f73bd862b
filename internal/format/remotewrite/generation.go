package remotewrite

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

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

// Series are the label sets of a generation. The next generations share them.
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

// KeySpace begins the texts of keys (Collector.Key) of one decoder, so that no two decoders give
// equal texts to different series. Texts of remote_write itself are label fields of its messages,
// which begin with a tag, 0x0a.
type KeySpace = byte

// The key spaces.
const (
	KeysOfAppender     KeySpace = 'A' // scrapes and rules
	KeysOfCSV          KeySpace = 'C'
	KeysOfOpenTSDB     KeySpace = 'D' // over HTTP
	KeysOfGraphite     KeySpace = 'G'
	KeysOfJSONLines    KeySpace = 'J'
	KeysOfLineProtocol KeySpace = 'L'
	KeysOfOTLP         KeySpace = 'O'
	KeysOfPushes       KeySpace = 'P'
	KeysOfStatsD       KeySpace = 'S'
	KeysOfText         KeySpace = 'T'
	KeysOfTelnet       KeySpace = 'U' // of OpenTSDB
	KeysOfDatadog      KeySpace = 'W'
)

// The compiler refuses a map with equal keys.
var _ = map[KeySpace]struct{}{
	KeysOfAppender: {}, KeysOfCSV: {}, KeysOfOpenTSDB: {}, KeysOfGraphite: {}, KeysOfJSONLines: {}, KeysOfLineProtocol: {},
	KeysOfOTLP: {}, KeysOfPushes: {}, KeysOfStatsD: {}, KeysOfText: {}, KeysOfTelnet: {}, KeysOfDatadog: {},
	0x0a: {},
}

// seedOf returns the seed of the keys of a message. The keys that senders' texts have without the
// labels of the rules name other series, so each set of these labels has a seed of its own.
func seedOf(table *series.Table, labels []series.Label) uint64 {
	seed := table.Seed()
	if len(labels) == 0 {
		return seed
	}
	var text []byte
	for _, l := range labels {
		text = AppendKey(AppendKey(text, l.Name), l.Value)
	}
	return seed ^ xxh3.HashSeed(text, seed)
}

// Extend adds labels to a label set, instead of those of the same name. It uses lset's memory.
func Extend(lset, labels []series.Label) []series.Label {
	return append(slices.DeleteFunc(lset, func(x series.Label) bool {
		return slices.ContainsFunc(labels, func(l series.Label) bool { return l.Name == x.Name })
	}), labels...)
}

// CheckExtra checks labels that a request adds to all of its series. It returns them as Rules has
// them.
func (l *Limits) CheckExtra(labels []series.Label) ([]series.Label, error) {
	labels = series.LastOfEach(labels)
	if err := l.checkNumber(labels); err != nil {
		return nil, err
	}
	for _, x := range labels {
		if err := l.checkLabel(x); err != nil {
			return nil, err
		}
	}
	return labels, nil
}

// Memo keeps what a generation knows of a series, or of metadata, for a sender that has an object
// of its own for each of them. The zero Memo knows nothing. It is safe for concurrent use.
type Memo struct {
	// word is the number of the Series or, for metadata, of the generation << 32 | what it knows:
	// the reference of the series, NoRef if relabeling drops it, or the changes of the durable
	// metadata at a time when this was there.
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
