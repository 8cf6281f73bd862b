package source

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/promlake/promlake/internal/query/fetch"
)

// Parts is a file and the ranges of it that a read takes.
type Parts struct {
	Key   string
	In    Reader
	Spans [][2]int64 // [offset, length] in bytes

	gap int64 // ranges of one row group that are no farther apart are taken with what is between them
}

// Parts returns a file of which no ranges are taken yet.
func (f *Files) Parts(ctx context.Context, key string, size int64) Parts {
	p := Parts{Key: key, In: f.Open(ctx, key, size)}
	if !f.Local() {
		p.gap = fetch.DefaultGapBytes
	}
	return p
}

// Add takes the ranges of a row group, ascending. What lies between two of them in a remote store is
// cheaper to fetch than to leave out, so that a request can go on to the next row groups.
func (p *Parts) Add(spans [][2]int64) {
	for i, s := range spans {
		if n := len(p.Spans); i > 0 && p.gap > 0 && s[0]-p.Spans[n-1][0]-p.Spans[n-1][1] <= p.gap {
			p.Spans[n-1][1] = s[0] + s[1] - p.Spans[n-1][0]
			continue
		}
		p.Spans = append(p.Spans, s)
	}
}

// Fetch are the ranges that several reads take, each once. The zero value is empty.
type Fetch struct {
	reads []Parts
	files map[string]*fileFetch
	order []*fileFetch
}

// fileFetch is what is taken of one file.
type fileFetch struct {
	in    Reader
	spans [][2]int64
	known map[[2]int64]bool
}

// Add adds the ranges of reads. The reads stay open until Close.
func (f *Fetch) Add(reads []Parts) {
	if f.files == nil {
		f.files = map[string]*fileFetch{}
	}
	f.reads = append(f.reads, reads...)
	for _, r := range reads {
		of := f.files[r.Key]
		if of == nil {
			of = &fileFetch{in: r.In, known: map[[2]int64]bool{}}
			f.files[r.Key], f.order = of, append(f.order, of)
		}
		for _, s := range r.Spans {
			if !of.known[s] {
				of.known[s], of.spans = true, append(of.spans, s)
			}
		}
	}
}

// Bytes is the size of all ranges, whether they are local or not. What several of them have in
// common counts once.
func (f *Fetch) Bytes() (n int64) {
	for _, of := range f.order {
		end := int64(0)
		for _, s := range slices.SortedFunc(slices.Values(of.spans), func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) }) {
			n += max(0, s[0]+s[1]-max(s[0], end))
			end = max(end, s[0]+s[1])
		}
	}
	return n
}

// Cost returns how many requests Prefetch would send to the store now, and for how many bytes.
func (f *Fetch) Cost() (gets int, bytes int64) {
	for _, of := range f.order {
		g, b := of.in.Cost(of.spans)
		gets, bytes = gets+g, bytes+b
	}
	return gets, bytes
}

// Prefetch makes the ranges local at once, until they are closed. If they are more than a share of
// the cache, or than there is room for, it does nothing: then each read fetches what it takes.
func (f *Files) Prefetch(ctx context.Context, all *Fetch) error {
	if all.Bytes() > f.atOnce {
		return nil
	}
	err := f.Each(ctx, len(all.order), func(_ context.Context, i int) error { return all.order[i].in.TryPrefetch(all.order[i].spans) })
	for i := 0; err == nil && i < len(all.reads); i++ { // everything is local now: this pins it for each read
		err = all.reads[i].In.TryPrefetch(all.reads[i].Spans)
	}
	if _, ok := errors.AsType[*fetch.FullError](err); ok {
		return all.Close()
	}
	return err
}

// Close ends the reads.
func (f *Fetch) Close() (err error) {
	for _, r := range f.reads {
		err = errors.Join(err, r.In.Close())
	}
	return err
}
