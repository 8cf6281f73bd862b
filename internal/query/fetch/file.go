package fetch

import (
	"math"
	"os"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/query/lru"
)

// file is a local file with pieces of one object.
type file struct {
	key   string
	whole bool // it is the object
	// by their place in the object, disjoint; of a whole object, one once it is complete
	pieces []*piece

	object int64 // bytes of the object, -1 if unknown

	path  string            // Cache.mu: it changes when the file is complete
	size  int64             // bytes, once it is complete
	entry *lru.Entry[*file] // Cache.mu: nil until it is complete
	done  chan struct{}     // closed once it is complete or given up
	err   error             // why it was given up

	reserved   int64    // Cache.mu: bytes of Cache.reserved
	remembered int64    // Cache.mu: bytes of Cache.remembered
	memory     *os.File // nil if the file is on disk
}

// cost is what a complete file takes of the budget on disk.
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

// pieces returns a piece for each of spans.
func pieces(spans []Span) []*piece {
	out := make([]*piece, len(spans))
	for i, s := range spans {
		out[i] = &piece{span: s}
	}
	return out
}

// spans returns where in the object the pieces are.
func (f *file) spans() []Span {
	out := make([]Span, len(f.pieces))
	for i, p := range f.pieces {
		out[i] = p.span
	}
	return out
}

// layOut places pieces one after the other and returns where they end.
func layOut(pieces []*piece) (at int64) {
	for _, p := range pieces {
		p.at = at
		at += p.span.Length
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

// has says that f can stand in for another complete file of the same object.
func (f *file) has(o *file) bool {
	return f.whole || !o.whole && !slices.ContainsFunc(o.pieces, func(p *piece) bool { return f.find(p.span) == nil })
}
