package fetch

import (
	"cmp"
	"os"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/parquetfile"
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

// Span is a range of bytes of an object.
type Span = parquetfile.Span

// request is one GET: a range of an object, and the destinations of its wanted parts.
type request struct {
	Span
	parts []part // ascending; bytes between them are discarded
}

// part is a run of bytes of a request that belongs to one piece of a local file.
type part struct {
	piece *piece
	from  int64 // in the object
	n     int64
}

// requests plans the GETs for pieces of one object. Neighbours share a request unless it would
// contain more than gap unwanted bytes. No request has more than size wanted bytes, so that large
// runs use several connections.
func requests(pieces []*piece, gap, size int64) []request {
	pieces = slices.SortedFunc(slices.Values(pieces), func(a, b *piece) int { return cmp.Compare(a.span.Offset, b.span.Offset) })
	var out []request
	var cur request
	wasted, wanted := int64(0), int64(0)
	flush := func() {
		if len(cur.parts) > 0 {
			out = append(out, cur)
		}
		cur, wasted, wanted = request{}, 0, 0
	}
	for _, p := range pieces {
		for from, end := p.span.Offset, p.span.Offset+p.span.Length; from < end; {
			if n := len(cur.parts); n > 0 && (wanted >= size || wasted+from-cur.end() > gap) {
				flush()
			}
			if len(cur.parts) == 0 {
				cur.Offset = from
			}
			wasted += from - cur.end()
			n := min(end-from, size-wanted)
			cur.parts = append(cur.parts, part{p, from, n})
			cur.Length = from + n - cur.Offset
			wanted += n
			from += n
		}
	}
	flush()
	return out
}

func (r *request) end() int64 { return r.Offset + r.Length }
