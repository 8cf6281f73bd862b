package fetch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
)

// Reader reads ranges of one object. Bytes that are not local are fetched once. It is safe for
// concurrent use. The caller must close it.
type Reader struct {
	ctx   context.Context
	cache *Cache
	key   string
	size  int64
	slots slots

	mu    sync.Mutex
	files []*file // pinned; parallel to in
	in    []*os.File
}

// Reader returns a reader of an object of size bytes. ctx bounds all its operations.
func (c *Cache) Reader(ctx context.Context, key string, size int64) *Reader {
	return &Reader{ctx: ctx, cache: c, key: key, size: size, slots: c.slots(ctx)}
}

// Prefetch fetches spans of the object, each [offset, length], that are not local, concurrently, so
// that later reads of them do not wait. Errors: those of the store, and FullError.
func (r *Reader) Prefetch(spans [][2]int64) error { return r.prefetch(spansOf(spans), true) }

// TryPrefetch is Prefetch for bytes that the caller can do without: it does not use memory if the
// disk has no room, but returns a FullError.
func (r *Reader) TryPrefetch(spans [][2]int64) error { return r.prefetch(spansOf(spans), false) }

// Cost returns the number of requests that Prefetch would take now, and their bytes.
func (r *Reader) Cost(spans [][2]int64) (gets int, bytes int64) {
	return r.cache.Cost(r.key, spansOf(spans))
}

func spansOf(pairs [][2]int64) []Span {
	out := make([]Span, len(pairs))
	for i, p := range pairs {
		out[i] = Span{Offset: p[0], Length: p[1]}
	}
	return out
}

func (r *Reader) prefetch(spans []Span, needed bool) error {
	for {
		r.mu.Lock()
		left := uncovered(spans, r.files) // not local
		r.mu.Unlock()
		if len(left) == 0 {
			return nil
		}
		cl, err := r.claim(left)
		if err != nil {
			return err
		}
		pinned, err := r.cache.settle(r.ctx, cl, r.slots, needed)
		for _, f := range pinned {
			err = errors.Join(err, r.open(f))
		}
		if err != nil {
			return err
		}
	}
}

// claim claims files that contain spans, which are not empty. A span of the whole object claims a
// copy of the object.
func (r *Reader) claim(spans []Span) (claims, error) {
	if spans[0].Length == r.size {
		return r.cache.claimWhole(r.key, r.size)
	}
	return r.cache.claimParts(r.key, r.size, spans)
}

// open adds a pinned file to the files that r reads.
func (r *Reader) open(f *file) error {
	in, err := os.Open(f.path)
	if err != nil {
		r.cache.release(f)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files, r.in = append(r.files, f), append(r.in, in)
	return nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off >= r.size {
		return 0, io.EOF
	}
	want := b[:min(int64(len(b)), r.size-off)]
	if err := r.Prefetch([][2]int64{{off, int64(len(want))}}); err != nil {
		return 0, err
	}
	for n := 0; n < len(want); {
		k, err := r.read(want[n:], off+int64(n))
		if n += k; err != nil {
			return n, err
		}
	}
	if len(want) < len(b) {
		return len(want), io.EOF
	}
	return len(b), nil
}

// read reads local bytes from an offset on, up to the end of one piece.
func (r *Reader) read(b []byte, off int64) (int, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.files, func(f *file) bool { return f.at(off) != nil })
	p, in := r.files[i].at(off), r.in[i]
	r.mu.Unlock()
	skip := off - p.span.Offset
	return in.ReadAt(b[:min(int64(len(b)), p.span.Length-skip)], p.at+skip)
}

// Close releases the files that r pinned.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for i, f := range r.files {
		err = errors.Join(err, r.in[i].Close())
		r.cache.release(f)
	}
	r.files, r.in = nil, nil
	return err
}

// uncovered returns the parts of spans that no piece of files contains, as disjoint ascending
// spans.
func uncovered(spans []Span, files []*file) []Span {
	var out []Span
	done := int64(0)
	for _, s := range slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) }) {
		for at, end := max(s.Offset, done), s.Offset+s.Length; at < end; {
			next := end
			have := false
			for _, f := range files {
				if p := f.at(at); p != nil {
					next, have = p.end(), true
					break
				}
				if i := f.next(at); i < len(f.pieces) {
					next = min(next, f.pieces[i].span.Offset)
				}
			}
			next = min(next, end)
			switch n := len(out); {
			case have:
			case n > 0 && out[n-1].Offset+out[n-1].Length == at:
				out[n-1].Length += next - at
			default:
				out = append(out, Span{Offset: at, Length: next - at})
			}
			at, done = next, next
		}
	}
	return out
}

// total returns the sum of the lengths of spans.
func total(spans []Span) (n int64) {
	for _, s := range spans {
		n += s.Length
	}
	return n
}
