package fetch

import (
	"os"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/base/memory"
)

// file is a local file with pieces of one object.
type file struct {
	key   string
	whole bool // the file is a copy of the object
	// disjoint and sorted by offset in the object; of a whole object: one, set when it is complete
	pieces []*piece

	object int64 // bytes of the object, -1 if unknown

	path  string                       // guarded by Cache.mu: it changes when the file is complete
	size  int64                        // bytes of the complete file
	entry *memory.Entry[string, *file] // guarded by Cache.mu; nil until the file is complete
	done  chan struct{}                // closed when the file is complete or has failed
	err   error                        // why it failed; valid after done is closed

	reserved int64    // guarded by Cache.mu: its part of Cache.reserved
	inMemory int64    // guarded by Cache.mu: its part of Cache.inMemory
	memory   *os.File // nil if the file is on disk
}

// cost returns the bytes that a complete file takes of the budget on disk.
func (f *file) cost() int64 {
	if f.memory != nil {
		return 0
	}
	return f.size
}

// piece is a run of bytes of an object.
type piece struct {
	span Span
	at   int64 // in the file
}

// pieces returns one piece per span.
func pieces(spans []Span) []*piece {
	out := make([]*piece, len(spans))
	for i, s := range spans {
		out[i] = &piece{span: s}
	}
	return out
}

// spans returns the span of each piece in the object.
func (f *file) spans() []Span {
	out := make([]Span, len(f.pieces))
	for i, p := range f.pieces {
		out[i] = p.span
	}
	return out
}

func (p *piece) end() int64 { return p.span.Offset + p.span.Length }

// next returns the index of the first piece that begins after an offset of the object.
func (f *file) next(off int64) int {
	return sort.Search(len(f.pieces), func(i int) bool { return f.pieces[i].span.Offset > off })
}

// at returns the piece that contains the byte at an offset of the object, or nil.
func (f *file) at(off int64) *piece {
	if i := f.next(off) - 1; i >= 0 && off < f.pieces[i].end() {
		return f.pieces[i]
	}
	return nil
}

// has reports whether f contains everything that another complete file of the same object contains.
func (f *file) has(o *file) bool {
	return f.whole || !o.whole && !slices.ContainsFunc(o.pieces, func(p *piece) bool {
		in := f.at(p.span.Offset)
		return in == nil || p.end() > in.end()
	})
}
