package appender

import (
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// table finds series by their labels, and by their references, which it gives. Its only pointers
// are those of byRef.
type table struct {
	hash  func(labels.Labels) uint64
	byRef []*state // nil where a series was forgotten; the reference 0 is none
	free  []uint32 // references of forgotten series
	// byHash has each reference at the hash of its series, or at the next number that is not taken.
	// 0 keeps a place, behind which others are.
	byHash map[uint64]uint32
}

func newTable() table {
	return table{hash: labels.Labels.Hash, byRef: []*state{nil}, byHash: map[uint64]uint32{}}
}

// len returns the number of series.
func (t *table) len() int { return len(t.byRef) - 1 - len(t.free) }

// find returns the series with the labels, and its place in byHash: nil, and a free one, if there
// is none.
func (t *table) find(ls labels.Labels) (s *state, at uint64) {
	for at = t.hash(ls); ; at++ {
		ref, taken := t.byHash[at]
		if !taken {
			return nil, at
		}
		if s = t.byRef[ref]; s != nil && labels.Equal(s.labels, ls) {
			return s, at
		}
	}
}

// add gives a series a reference, and a place that find has returned.
func (t *table) add(s *state, at uint64) {
	if n := len(t.free); n > 0 {
		s.ref, t.free = t.free[n-1], t.free[:n-1]
		t.byRef[s.ref] = s
	} else {
		s.ref = uint32(len(t.byRef))
		t.byRef = append(t.byRef, s)
	}
	t.byHash[at] = s.ref
}

// remove forgets a series.
func (t *table) remove(s *state) {
	_, at := t.find(s.labels)
	t.byHash[at] = 0
	if _, behind := t.byHash[at+1]; !behind {
		for ref, taken := t.byHash[at]; taken && ref == 0; ref, taken = t.byHash[at] {
			delete(t.byHash, at)
			at--
		}
	}
	t.byRef[s.ref] = nil
	t.free = append(t.free, s.ref)
}

// Family is the metadata of a metric family. It does not change, so that transactions share it.
type Family struct {
	segment.Metadata

	memo remotewrite.Memo
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

// of returns the family with this metadata. It copies the name of a new one.
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
