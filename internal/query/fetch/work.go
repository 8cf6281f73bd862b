package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/objstore"
)

// work is the making of a file.
type work struct {
	cache *Cache
	file  *file
	out   *os.File
	final string // path once it is complete

	fetch []*piece // what nobody has
	loans []loan   // what another file has or will have
	lent  []*os.File
}

// loan is a piece that is copied from another file. That one may be removed meanwhile: it stays open.
type loan struct {
	to, from *piece
	file     *os.File
}

// begin opens a file and finds out where its pieces come from. c.mu is held.
func (c *Cache) begin(f *file) (*work, error) {
	dir, err := c.settings.Dir()
	if err != nil {
		return nil, err
	}
	w := &work{cache: c, file: f, final: filepath.Join(dir, c.name(f))}
	if w.out, err = os.CreateTemp(dir, "fetch-*"); err != nil {
		return nil, err
	}
	f.path = w.out.Name()
	if err := w.borrow(); err != nil {
		w.giveBack()
		return nil, errors.Join(err, w.out.Close(), os.Remove(f.path))
	}
	return w, nil
}

// name returns a file's name. That of a whole object is always the same; parts of it are numbered, for a reader may remember what it read
// under a name.
func (c *Cache) name(f *file) string {
	sum := sha256.Sum256([]byte(f.key))
	name := hex.EncodeToString(sum[:])
	c.seq++
	switch {
	case f.whole:
		return name + ".parquet"
	case f.rows != nil:
		return fmt.Sprintf("%s-%d.parquet", name, c.seq)
	}
	return fmt.Sprintf("%s-%d.part", name, c.seq)
}

// borrow divides the pieces into those that other files of the object have and those to be fetched.
func (w *work) borrow() error {
	open := map[*file]*os.File{}
	for _, p := range w.file.pieces {
		lender, from := w.cache.lender(w.file.key, p.span)
		if from == nil {
			w.fetch = append(w.fetch, p)
			continue
		}
		if open[lender] == nil {
			o, err := os.Open(lender.path)
			if err != nil {
				return err
			}
			open[lender] = o
			w.lent = append(w.lent, o)
		}
		w.loans = append(w.loans, loan{p, from, open[lender]})
	}
	return nil
}

// lender returns a file of an object that has a span, or will have it, and its piece. c.mu is held.
func (c *Cache) lender(key string, s Span) (*file, *piece) {
	var pending *file
	var at *piece
	for _, f := range c.objects[key] {
		p := f.find(s)
		if p != nil && f.entry != nil {
			return f, p
		}
		if p != nil {
			pending, at = f, p
		}
	}
	return pending, at
}

func (w *work) giveBack() {
	for _, o := range w.lent {
		_ = o.Close() // it was only read
	}
}

// make brings all pieces in and completes the file.
func (w *work) make(ctx context.Context, s slots) error {
	defer w.giveBack()
	var again []*piece
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.get(gctx, w.fetch, s) })
	g.Go(func() (err error) {
		again, err = w.copyLoans(gctx)
		return err
	})
	err := g.Wait()
	if err == nil && len(again) > 0 {
		err = w.get(ctx, again, s)
	}
	if err == nil && w.file.whole {
		err = w.getWhole(ctx, s)
	}
	if err == nil && w.file.rows != nil {
		err = w.writeFooter()
	}
	if err != nil {
		return fmt.Errorf("fetch %s: %w", w.file.key, err)
	}
	return nil
}

// copyLoans copies what other files have, and returns the pieces that they do not get after all.
func (w *work) copyLoans(ctx context.Context) (again []*piece, err error) {
	for _, l := range w.loans {
		if err := wait(ctx, l.from.done); err != nil {
			return nil, err
		}
		if l.from.err != nil {
			again = append(again, l.to)
			continue
		}
		src := io.NewSectionReader(l.file, l.from.at+l.to.span.Offset-l.from.span.Offset, l.to.span.Length)
		if err := w.fill(l.to.at, l.to.span.Length, src); err != nil {
			return nil, err
		}
		if l.to.span.Length > 0 {
			close(l.to.done)
		}
	}
	return again, nil
}

// get fetches pieces, some requests at a time.
func (w *work) get(ctx context.Context, pieces []*piece, s slots) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range requests(pieces, w.cache.settings.GapBytes, w.cache.settings.RequestBytes) {
		g.Go(func() error {
			select {
			case s <- struct{}{}:
				defer func() { <-s }()
				return w.request(ctx, &r)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}
	return g.Wait()
}

func (w *work) request(ctx context.Context, r *request) (err error) {
	body, obj, err := w.cache.store.Get(ctx, w.file.key, r.Offset, r.Length)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := w.file.check(obj); err != nil {
		return err
	}
	w.cache.meter.Fetched(r.Length)
	at := r.Offset
	for _, p := range r.parts {
		if _, err := io.CopyN(io.Discard, body, p.from-at); err != nil {
			return short(err)
		}
		if err := w.fill(p.piece.at+p.from-p.piece.span.Offset, p.n, body); err != nil {
			return err
		}
		at = p.from + p.n
		if p.piece.left.Add(-1) == 0 {
			close(p.piece.done)
		}
	}
	return nil
}

// getWhole fetches an object that is not to be had in pieces because its size is not known, or because it is empty.
func (w *work) getWhole(ctx context.Context, s slots) (err error) {
	f := w.file
	if f.pieces != nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		defer func() { <-s }()
	case <-ctx.Done():
		return ctx.Err()
	}
	body, obj, err := w.cache.store.Get(ctx, f.key, 0, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if err := f.check(obj); err != nil {
		return err
	}
	if err := w.fill(0, obj.Size, body); err != nil {
		return err
	}
	w.cache.meter.Fetched(obj.Size)
	f.size = obj.Size
	return nil
}

// check holds an object against what is known of it.
func (f *file) check(o objstore.Object) error {
	if f.object >= 0 && o.Size != f.object {
		return fmt.Errorf("the object has %d bytes instead of %d: %w", o.Size, f.object, io.ErrUnexpectedEOF)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// fill writes n bytes at an offset of the file.
func (w *work) fill(at, n int64, from io.Reader) error {
	buf := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buf)
	got, err := io.CopyBuffer(io.NewOffsetWriter(w.out, at), io.LimitReader(from, n), buf[:])
	if err == nil && got != n {
		err = fmt.Errorf("got %d of %d bytes: %w", got, n, io.ErrUnexpectedEOF)
	}
	return err
}

// short makes an end where more should be an error.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
