package recent

import (
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/segment"
)

// footerShare is the inverse of the share of the limit of Segments that footers take beyond it.
const footerShare = 3

// footers are the footers of the objects that were stored last, whether their content is kept or
// not: a query that is the first one for some time need not read those of all objects since. They
// wait for the first reader, who keeps them as it keeps others.
type footers struct {
	limit int64 // bytes

	mu      sync.Mutex
	all     *memory.LRU[string, footer] // by key
	columns []string                    // label columns of the last one
}

type footer struct {
	size int64 // of the object
	info segment.Info
}

// PutFooter keeps what the footer of an object of size bytes says, in place of the oldest ones.
// Footers with metadata, which changes when it is encoded, are not kept. Nobody may change info any
// more.
func (s *Segments) PutFooter(key string, size int64, info segment.Info) {
	if s == nil || len(info.Metadata) > 0 {
		return
	}
	f, names := &s.footers, cap(info.LabelColumns)
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.columns, info.LabelColumns) { // as of most segments
		info.LabelColumns, names = f.columns, 0
	}
	f.columns = info.LabelColumns
	const perFooter, perName = 448, 16
	cost := perFooter + int64(len(key)+cap(info.Values)+perName*(names+cap(info.MapNames)))
	if f.all.Get(key) != nil || cost > f.limit {
		return
	}
	f.all.Add(key, footer{size, info}, cost)
	f.all.Evict(0)
}

// TakeFooter returns what the footer of an object of size bytes says, and forgets it.
func (s *Segments) TakeFooter(key string, size int64) (segment.Info, bool) {
	if s == nil {
		return segment.Info{}, false
	}
	f := s.footers.take(key)
	return f.info, f.size == size
}

// take removes the entry of a key, and returns it; one of size -1 if there is none.
func (f *footers) take(key string) footer {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.all.Get(key)
	if e == nil {
		return footer{size: -1}
	}
	f.all.Remove(e)
	return e.Value
}
