package appender

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// Family is the metadata of a metric family. It does not change, so that transactions share it.
type Family struct {
	segment.Metadata

	memo remotewrite.Memo
	next atomic.Pointer[Family] // what followed it lately
}

// maxFamilies and maxFamilyBytes are the number of families, and of bytes of their texts, from which
// on they are forgotten, and learned again.
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
