package fetch

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

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
