package query

import (
	"context"
	"errors"
)

// read returns a read of a file, of nothing yet.
func (f *files) read(ctx context.Context, key string, size int64) fileRead {
	return fileRead{key: key, in: f.readerAt(ctx, key, size)}
}

// fetches are the parts of files that several reads take, each once. The zero value is empty.
type fetches struct {
	reads []fileRead
	files map[string]*fileFetch
	order []*fileFetch
}

// fileFetch is what is taken of one file.
type fileFetch struct {
	in    spanReader
	spans [][2]int64
	known map[[2]int64]bool
}

func (f *fetches) add(reads []fileRead) {
	if f.files == nil {
		f.files = map[string]*fileFetch{}
	}
	f.reads = append(f.reads, reads...)
	for _, r := range reads {
		of := f.files[r.key]
		if of == nil {
			of = &fileFetch{in: r.in, known: map[[2]int64]bool{}}
			f.files[r.key], f.order = of, append(f.order, of)
		}
		for _, s := range r.spans {
			if !of.known[s] {
				of.known[s], of.spans = true, append(of.spans, s)
			}
		}
	}
}

// bytes is the size of all parts, whether they are local or not.
func (f *fetches) bytes() (n int64) {
	for _, of := range f.order {
		for _, s := range of.spans {
			n += s[1]
		}
	}
	return n
}

// gets is how many requests to the store prefetch would send now.
func (f *fetches) gets() (n int) {
	for _, of := range f.order {
		k, _ := of.in.cost(of.spans)
		n += k
	}
	return n
}

// missing is how many bytes prefetch would get from the store now.
func (f *fetches) missing() (n int64) {
	for _, of := range f.order {
		_, k := of.in.cost(of.spans)
		n += k
	}
	return n
}

// prefetch makes the parts local, all at once, until close. If the disk has no room for them, the error is fetch.FullError.
func (f *fetches) prefetch(ctx context.Context, files *files) error {
	err := files.each(ctx, len(f.order), func(_ context.Context, i int) error { return f.order[i].in.tryPrefetch(f.order[i].spans) })
	if err != nil {
		return err
	}
	for _, r := range f.reads { // now nobody waits
		if err := r.in.tryPrefetch(r.spans); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetches) close() (err error) {
	for _, r := range f.reads {
		err = errors.Join(err, r.in.Close())
	}
	return err
}
