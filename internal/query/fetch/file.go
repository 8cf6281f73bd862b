package fetch

import (
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/promlake/promlake/internal/query/lru"
)

// file is a local file with pieces of one object.
type file struct {
	key    string
	whole  bool     // it is the object
	rows   *rowView // of a row file
	pieces []*piece // by their place in the object, disjoint; of a whole object, one once it is complete

	object int64 // bytes of the object, -1 if unknown

	path  string            // Cache.mu: it changes when the file is complete
	size  int64             // bytes, once it is complete
	entry *lru.Entry[*file] // Cache.mu: nil until it is complete
	done  chan struct{}     // closed once it is complete or given up
	err   error             // why it was given up
}

// piece is a run of bytes of an object.
type piece struct {
	span Span
	at   int64 // in the file

	done chan struct{} // closed once the bytes are there, or err says why they will not be
	err  error
	left atomic.Int32 // parts of requests that are not there yet
}

// layOut places pieces one after the other from an offset of the file and returns where they end.
func layOut(pieces []*piece, at int64) int64 {
	for _, p := range pieces {
		p.at, p.done = at, make(chan struct{})
		at += p.span.Length
		if p.span.Length == 0 {
			close(p.done)
		}
	}
	return at
}

func (p *piece) end() int64 { return p.span.Offset + p.span.Length }

// next returns the position of the first piece that begins after an offset of the object.
func (f *file) next(off int64) int {
	return sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i].span.Offset > off })
}

// at returns the piece that has the byte at an offset of the object, nil if there is none.
func (f *file) at(off int64) *piece {
	if i := f.next(off) - 1; i >= 0 && off < f.pieces[i].end() {
		return f.pieces[i]
	}
	return nil
}

// after returns where the first piece after an offset of the object begins.
func (f *file) after(off int64) int64 {
	if i := f.next(off); i < len(f.pieces) {
		return f.pieces[i].span.Offset
	}
	return math.MaxInt64
}

// find returns the piece that has all of a span, nil if there is none.
func (f *file) find(s Span) *piece {
	if p := f.at(s.Offset); p != nil && s.Offset+s.Length <= p.end() {
		return p
	}
	return nil
}

// fail gives up the pieces that are not there.
func (f *file) fail(err error) {
	for _, p := range f.pieces {
		select {
		case <-p.done:
		default:
			p.err = err
			close(p.done)
		}
	}
}

// has says that f can stand in for another complete file of the same object.
func (f *file) has(o *file) bool {
	switch {
	case o.whole:
		return f.whole
	case o.rows != nil && !f.whole:
		return f.rows != nil && f.rows.has(o.rows)
	}
	return !slices.ContainsFunc(o.pieces, func(p *piece) bool { return f.find(p.span) == nil })
}
