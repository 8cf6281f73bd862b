package appender

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// table finds series by their labels, and by their references, which it gives. It takes seven to
// fourteen bytes a series in addition to a pointer, and no other pointers. The hash of a series is
// not kept: it is computed again when the table grows, and when the series is forgotten.
type table struct {
	hash  func(labels.Labels) uint64
	byRef []*state // nil where a series was forgotten; the reference 0 is none
	free  []uint32 // references of forgotten series
	slots []uint32 // references by hash, with linear probing; 0: empty
	tags  []uint8  // by slot: tagOf the hash, so that a search reads the memory of few other series
	n     int      // series
}

const firstSlots = 64

func newTable() table {
	return table{hash: labels.Labels.Hash, byRef: []*state{nil}, slots: make([]uint32, firstSlots), tags: make([]uint8, firstSlots)}
}

// tagOf returns a part of a hash that its slot does not depend on.
func tagOf(hash uint64) uint8 { return uint8(hash >> 56) }

// find returns the series with the labels, or nil.
func (t *table) find(ls labels.Labels) *state {
	hash, mask := t.hash(ls), uint64(len(t.slots)-1)
	for i := hash & mask; t.slots[i] != 0; i = (i + 1) & mask {
		if t.tags[i] != tagOf(hash) {
			continue
		}
		if s := t.byRef[t.slots[i]]; labels.Equal(s.labels, ls) {
			return s
		}
	}
	return nil
}

// add gives a series that is not in the table a reference.
func (t *table) add(s *state) {
	if n := len(t.free); n > 0 {
		s.ref, t.free = t.free[n-1], t.free[:n-1]
		t.byRef[s.ref] = s
	} else {
		s.ref = uint32(len(t.byRef))
		t.byRef = append(t.byRef, s)
	}
	if t.n++; 4*t.n > 3*len(t.slots) {
		old := t.slots
		t.slots, t.tags = make([]uint32, 2*len(old)), make([]uint8, 2*len(old))
		for _, ref := range old {
			if ref != 0 {
				t.place(ref)
			}
		}
	}
	t.place(s.ref)
}

// place puts a reference into the first slot that is empty.
func (t *table) place(ref uint32) {
	hash, mask := t.hash(t.byRef[ref].labels), uint64(len(t.slots)-1)
	i := hash & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i], t.tags[i] = ref, tagOf(hash)
}

// remove forgets a series and moves those behind it, so that no search ends at the empty slot.
func (t *table) remove(s *state) {
	mask := uint64(len(t.slots) - 1)
	i := t.hash(s.labels) & mask
	for t.slots[i] != s.ref {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if home := t.hash(t.byRef[t.slots[j]].labels) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i], t.tags[i] = t.slots[j], t.tags[j]
			i = j
		}
	}
	t.slots[i] = 0
	t.byRef[s.ref] = nil
	t.free = append(t.free, s.ref)
	t.n--
}

// Family is the metadata of a metric family. It does not change, so that transactions share it.
type Family struct {
	segment.Metadata

	memo remotewrite.Memo
	next atomic.Pointer[Family] // what followed it lately
}

// maxFamilies and maxFamilyBytes are the number of families, and of bytes of their texts, from
// which on they are forgotten, and learned again.
const (
	maxFamilies    = 1 << 14
	maxFamilyBytes = 16 << 20
)

// families are those that were described lately: most targets describe the same ones in each
// scrape, in the same order. They are safe for concurrent use.
type families struct {
	mu     sync.Mutex
	byName map[string]*Family
	bytes  int // of texts since it was empty
}

// after returns the family with this metadata, which follows another one or nil. It copies the name
// of a new one.
func (f *families) after(last *Family, m *segment.Metadata) *Family {
	if last == nil {
		return f.of(m)
	}
	if next := last.next.Load(); next != nil && next.Metadata == *m {
		return next
	}
	if last.Metadata == *m {
		return last
	}
	next := f.of(m)
	last.next.Store(next)
	return next
}

func (f *families) of(m *segment.Metadata) *Family {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[m.Metric]; known != nil && known.Metadata == *m {
		return known
	}
	if f.bytes += len(m.Metric) + len(m.Help) + len(m.Unit); len(f.byName) >= maxFamilies || f.bytes > maxFamilyBytes || f.byName == nil {
		f.byName, f.bytes = map[string]*Family{}, 0
	}
	family := &Family{Metadata: *m}
	family.Metric = strings.Clone(m.Metric)
	f.byName[family.Metric] = family
	return family
}
