// Package blockio reads and writes the files of blocks in an object store. Sink writes the series of
// a new block and, beside the samples of a 24h block, its rollups.
package blockio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// memoryBytes is the size up to which a file is buffered in memory.
const memoryBytes = 1 << 20

// Writer writes the files of one new block to a store. It implements block.Files: Close of a file
// uploads it, if its key is absent. It belongs to one goroutine.
type Writer struct {
	ctx   context.Context
	store objstore.Store
	block key.Block
	dir   string // of temporary files
	files []*file
	bytes int64
}

// NewWriter returns a Writer whose uploads ctx bounds. Large files are buffered in dir ("" is
// os.TempDir()) until their upload.
func NewWriter(ctx context.Context, store objstore.Store, b key.Block, dir string) *Writer {
	return &Writer{ctx: ctx, store: store, block: b, dir: dir}
}

// Bytes returns the size of all files that were closed.
func (w *Writer) Bytes() int64 { return w.bytes }

// Block returns the key of the block.
func (w *Writer) Block() key.Block { return w.block }

// Create begins a file.
func (w *Writer) Create(name string) (io.WriteCloser, error) {
	f := &file{w: w, name: name}
	w.files = append(w.files, f)
	return f, nil
}

// Remove deletes every file that was or may have been uploaded; garbage collection deletes what
// Remove cannot. It may only be called for blocks that can never be committed.
func (w *Writer) Remove(ctx context.Context) error {
	var errs []error
	for _, f := range w.files {
		if f.put {
			errs = append(errs, w.store.Delete(ctx, w.block.File(f.name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove block %s: %w", w.block, err)
	}
	return nil
}

// Close releases files that were created and never closed. They are not uploaded.
func (w *Writer) Close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.discard())
	}
	return errors.Join(errs...)
}

// file buffers what is written to it in memory and, once it is large, in an unlinked file.
type file struct {
	w    *Writer
	name string
	buf  bytes.Buffer
	tmp  *os.File
	size int64
	done bool
	put  bool // an upload was begun
}

func (f *file) Write(p []byte) (int, error) {
	if f.done {
		return 0, fmt.Errorf("write %s: %w", f.name, os.ErrClosed)
	}
	if f.buf.Len()+len(p) > memoryBytes {
		if err := f.spill(); err != nil {
			return 0, err
		}
	}
	f.size += int64(len(p))
	if f.tmp != nil && len(p) > memoryBytes {
		n, err := f.tmp.Write(p)
		return n, f.wrap(err)
	}
	return f.buf.Write(p)
}

// spill moves what is in memory to the temporary file.
func (f *file) spill() error {
	if f.tmp == nil {
		tmp, err := os.CreateTemp(f.w.dir, "promlake-block-*")
		if err != nil {
			return f.wrap(err)
		}
		f.tmp = tmp
		if err := os.Remove(tmp.Name()); err != nil { // so that no crash leaves it behind
			return f.wrap(err)
		}
	}
	_, err := f.buf.WriteTo(f.tmp)
	return f.wrap(err)
}

func (f *file) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write temporary file for %s: %w", f.name, err)
}

// Close uploads the file.
func (f *file) Close() error {
	if f.done {
		return nil
	}
	if err := errors.Join(f.upload(), f.discard()); err != nil {
		return fmt.Errorf("upload %s: %w", f.name, err)
	}
	f.w.bytes += f.size
	return nil
}

// discard frees what the file holds here.
func (f *file) discard() error {
	if f.done {
		return nil
	}
	f.done, f.buf = true, bytes.Buffer{}
	if f.tmp == nil {
		return nil
	}
	return f.wrap(f.tmp.Close())
}

func (f *file) upload() error {
	var body io.ReadSeeker = bytes.NewReader(f.buf.Bytes())
	if f.tmp != nil {
		if err := f.spill(); err != nil {
			return err
		}
		if _, err := f.tmp.Seek(0, io.SeekStart); err != nil {
			return f.wrap(err)
		}
		body = f.tmp
	}
	f.put = true
	_, err := f.w.store.Put(f.w.ctx, f.w.block.File(f.name), body, objstore.Condition{IfAbsent: true})
	return err
}

// Sink implements merge.Sink.
type Sink struct {
	files  *Writer
	view   *series.View
	block  *block.Writer
	rollup *rollup.Writer // nil at other levels
}

// NewSink begins a block whose label sets are references into view. rollups has no effect at other
// levels than 24h.
func NewSink(files *Writer, view *series.View, o block.Options, rollups bool) (*Sink, error) {
	w, err := block.NewWriter(files, view, o)
	if err != nil {
		return nil, err
	}
	s := &Sink{files: files, view: view, block: w}
	if rollups && o.Level == key.L24h {
		s.rollup, err = rollup.NewWriter(files, o.Encoders)
	}
	return s, err
}

// Append implements merge.Sink.
func (s *Sink) Append(ref series.Ref, x *block.Samples) error {
	if err := s.block.Append(ref, x); err != nil {
		return err
	}
	if s.rollup == nil || len(x.TS) == 0 {
		return nil
	}
	return s.rollup.Append(s.view.Metrics[s.view.Metric(ref)], s.block.LastID(), x.TS, x.V, x.ST)
}

// Close ends the block b, which was made of sources; meta.json is its last file. It sets the times
// and counts of b.
func (s *Sink) Close(b *catalog.Block, sources []string) error {
	if s.rollup != nil {
		files, err := s.rollup.Close()
		if err != nil {
			return err
		}
		for _, f := range files {
			s.block.AddFile(f.Name, f.Bytes)
		}
	}
	meta, err := s.block.Close(block.Header{
		Level: b.Level, Window: b.Window, Rank: b.Rank, DeletesThrough: b.DeletesThrough, Slice: block.Slice(b.Slice), Sources: sources,
	})
	if err != nil {
		return err
	}
	b.MinT, b.MaxT = meta.MinT, meta.MaxT
	b.Series, b.Samples, b.Bytes = meta.Series, meta.Floats+meta.Hists, s.files.Bytes()
	return nil
}

// Metadata writes the descriptions of metric families, as block.Writer does.
func (s *Sink) Metadata(m []segment.Metadata) error { return s.block.Metadata(m) }
