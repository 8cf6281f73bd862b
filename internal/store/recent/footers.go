package recent

import (
	"container/list"
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/format/segment"
)

// footerShare is the inverse of the share of the limit of Segments that footers take beyond it.
const footerShare = 3

// footers are the footers of the objects that were stored last, whether their content is kept or
// not: a query that is the first one for some time need not read those of all objects since. They
// wait for the first reader, who keeps them as it keeps others.
type footers struct {
	limit int64 // bytes

	mu    sync.Mutex
	all   map[string]*list.Element // of footer, by key
	order *list.List               // of footer: the oldest first
	bytes int64
}

type footer struct {
	key   string
	size  int64 // of the object
	info  segment.Info
	names int // of its label columns, unless it shares them with the one before it
}

func newFooters(limit int64) footers {
	return footers{limit: limit, all: map[string]*list.Element{}, order: list.New()}
}

// cost is the memory of an entry.
func (f *footer) cost() int64 {
	const own, perName = 448, 16
	return own + int64(len(f.key)+cap(f.info.Values)+perName*(f.names+cap(f.info.MapNames)))
}

// PutFooter keeps what the footer of an object of size bytes says, in place of the oldest ones.
// Footers with metadata, which changes when it is encoded, are not kept. Nobody may change info any
// more.
func (s *Segments) PutFooter(key string, size int64, info segment.Info) {
	if s == nil || len(info.Metadata) > 0 {
		return
	}
	f, entry := &s.footers, &footer{key, size, info, cap(info.LabelColumns)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.order.Back(); last != nil {
		// Segments mostly have the same columns as the one before.
		if before := last.Value.(*footer).info.LabelColumns; slices.Equal(before, info.LabelColumns) {
			entry.info.LabelColumns, entry.names = before, 0
		}
	}
	if f.all[key] != nil || entry.cost() > f.limit {
		return
	}
	f.all[key] = f.order.PushBack(entry)
	for f.bytes += entry.cost(); f.bytes > f.limit; {
		f.remove(f.order.Front())
	}
}

// TakeFooter returns what the footer of an object of size bytes says, and forgets it.
func (s *Segments) TakeFooter(key string, size int64) (segment.Info, bool) {
	if s == nil {
		return segment.Info{}, false
	}
	if f := s.footers.take(key); f != nil && f.size == size {
		return f.info, true
	}
	return segment.Info{}, false
}

// take removes the entry of a key, and returns it; nil if there is none.
func (f *footers) take(key string) *footer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.all[key]; e != nil {
		return f.remove(e)
	}
	return nil
}

// remove removes an entry. The caller holds f.mu.
func (f *footers) remove(e *list.Element) *footer {
	x := f.order.Remove(e).(*footer)
	delete(f.all, x.key)
	f.bytes -= x.cost()
	return x
}
