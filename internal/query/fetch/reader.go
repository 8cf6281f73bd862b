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

// Reader reads ranges of one object. What is not local is fetched once. It is safe for concurrent
// use. The caller closes it.
type Reader struct {
	ctx   context.Context
	cache *Cache
	key   string
	size  int64
	slots slots

	mu    sync.Mutex
	files []*file // pinned
	in    []*os.File
}

// Reader returns a reader of an object of size bytes. ctx bounds all that it does.
func (c *Cache) Reader(ctx context.Context, key string, size int64) *Reader {
	return &Reader{ctx: ctx, cache: c, key: key, size: size, slots: c.slots(ctx)}
}

// Prefetch makes spans of the object local, all at once, so that reads of them do not wait. Errors:
// those of the store, and FullError.
func (r *Reader) Prefetch(spans []Span) error { return r.prefetch(spans, true) }

// TryPrefetch is Prefetch of what can do without it: if the disk has no room, the error is a
// FullError.
func (r *Reader) TryPrefetch(spans []Span) error { return r.prefetch(spans, false) }

func (r *Reader) prefetch(spans []Span, needed bool) error {
	for {
		left := r.missing(spans)
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

// claim claims files that have spans, which are not empty. Who wants all of the object gets a file
// that is the object.
func (r *Reader) claim(spans []Span) (claims, error) {
	if spans[0].Length == r.size {
		return r.cache.claimWhole(r.key, r.size)
	}
	return r.cache.claimParts(r.key, r.size, spans)
}

// missing returns what of spans is not local.
func (r *Reader) missing(spans []Span) []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uncovered(spans, r.files)
}

// open adds a pinned file to what is read from.
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
	if err := r.Prefetch([]Span{{Offset: off, Length: int64(len(want))}}); err != nil {
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

// read reads what one piece has from an offset on that is local.
func (r *Reader) read(b []byte, off int64) (int, error) {
	r.mu.Lock()
	i := slices.IndexFunc(r.files, func(f *file) bool { return f.at(off) != nil })
	p, in := r.files[i].at(off), r.in[i]
	r.mu.Unlock()
	skip := off - p.span.Offset
	return in.ReadAt(b[:min(int64(len(b)), p.span.Length-skip)], p.at+skip)
}

// Close lets go of what is local.
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

// uncovered returns the parts of spans that no piece of files has, as disjoint spans in order.
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
				next = min(next, f.after(at))
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

// total returns the bytes of disjoint spans.
func total(spans []Span) (n int64) {
	for _, s := range spans {
		n += s.Length
	}
	return n
}
