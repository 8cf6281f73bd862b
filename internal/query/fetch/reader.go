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

// Reader reads ranges of one object. What is not local is fetched once. It is safe for concurrent use. The caller closes it.
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
	return &Reader{ctx: ctx, cache: c, key: key, size: size, slots: c.slots()}
}

// Prefetch makes spans of the object local, all at once, so that reads of them do not wait. Errors: those of the store.
func (r *Reader) Prefetch(spans []Span) error {
	for {
		left := r.missing(spans)
		if len(left) == 0 {
			return nil
		}
		p := r.plan(left)
		if left[0].Length == r.size {
			p = r.cache.whole(r.key, r.size)
		}
		f, err := r.cache.acquire(r.ctx, p, r.slots)
		if err != nil {
			return err
		}
		if err := r.open(f); err != nil {
			return err
		}
	}
}

// plan returns the plan of a file that has where spans begin, and may have more of them. If there is none, one is made of all that no file has.
func (r *Reader) plan(spans []Span) plan {
	return plan{
		kind: kindChunks, key: r.key,
		fits: func(f *file) bool { return f.at(spans[0].Offset) != nil || f.whole },
		begin: func() *file {
			f := &file{object: r.size}
			for _, s := range uncovered(spans, r.cache.objects[r.key]) {
				f.pieces = append(f.pieces, &piece{span: s})
			}
			f.size = layOut(f.pieces, 0)
			return f
		},
	}
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
