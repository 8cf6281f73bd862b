package promblock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/format/series"
)

// CorruptError reports a chunk that cannot be read.
type CorruptError struct {
	Block   ulid.ULID // zero: the chunk is in no block, but came from a server
	Series  labels.Labels
	Segment int // number of the file below chunks/, from 1
	Offset  int // of the chunk in that file, bytes
	Err     error
}

// Error implements error.
func (e *CorruptError) Error() string {
	if e.Block == (ulid.ULID{}) {
		return fmt.Sprintf("series %s: corrupt chunk: %v", e.Series, e.Err)
	}
	return fmt.Sprintf("block %s: series %s: corrupt chunk in chunks/%06d at offset %d: %v", e.Block, e.Series, e.Segment, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Options configure how a block is read. The zero value reads it as Prometheus does.
type Options struct {
	// External are added to all label sets, in the place of labels of the same names; by name.
	External []series.Label
	// Skip is called with each chunk that cannot be read. Its samples are left out if Skip returns
	// true. nil skips none. It may be called concurrently.
	Skip func(*CorruptError) bool
}

// Block is an open block. Its methods may be called concurrently.
type Block struct {
	opts   Options
	meta   tsdb.BlockMeta
	block  *tsdb.Block
	index  tsdb.IndexReader
	chunks tsdb.ChunkReader
	tombs  tombstones.Reader
	pool   chunkenc.Pool
}

// Open opens the block in a directory. The caller closes it. Errors: ErrFormat.
func Open(dir string, o Options) (b *Block, err error) {
	b = &Block{opts: o, pool: chunkenc.NewPool()}
	if b.block, err = openBlock(dir, b.pool); err != nil {
		return nil, fmt.Errorf("%w: open %s: %w", ErrFormat, dir, err)
	}
	b.meta = b.block.Meta()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%w: open %s: %w", ErrFormat, dir, err), b.Close())
		}
	}()
	if b.index, err = b.block.Index(); err != nil {
		return b, err
	}
	if b.chunks, err = b.block.Chunks(); err != nil {
		return b, err
	}
	b.tombs, err = b.block.Tombstones()
	return b, err
}

// Close releases the block's files. No method may run.
func (b *Block) Close() error {
	var errs []error
	if b.tombs != nil {
		errs = append(errs, b.tombs.Close())
	}
	if b.chunks != nil {
		errs = append(errs, b.chunks.Close())
	}
	if b.index != nil {
		errs = append(errs, b.index.Close())
	}
	return errors.Join(append(errs, b.block.Close())...)
}

// Keep returns the reference of a label set, whose slice it may not keep, and whether its series is
// wanted. If so, Rows needs this many bytes of memory for it. Labels are by name; none has an empty
// value.
type Keep func(lset []series.Label, bytes int64) (series.Ref, bool, error)

// Scan reads the series that have chunks in [from, to) (ms) and that keep wants. Errors: ErrFormat,
// and those of keep and ctx.
func (b *Block) Scan(ctx context.Context, from, to int64, keep Keep) (*Rows, error) {
	s := &scan{b: b, rows: &Rows{source: b, from: from, to: to}, keep: keep}
	p, err := b.all(ctx)
	if err != nil {
		return nil, b.broken("read postings", err)
	}
	for n := 0; p.Next(); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf("scan block %s: %w", b.meta.ULID, context.Cause(ctx))
		}
		if err := s.series(p); err != nil {
			return nil, err
		}
	}
	if err := p.Err(); err != nil {
		return nil, b.broken("read postings", err)
	}
	s.rows.byRef = nil
	return s.rows, nil
}

func (b *Block) broken(what string, err error) error {
	return fmt.Errorf("block %s: %s: %w: %w", b.meta.ULID, what, ErrFormat, err)
}

// load implements source.
func (b *Block) load(m chunks.Meta) (chunkenc.Chunk, error) {
	c, _, err := b.chunks.ChunkOrIterable(m)
	return c, err
}

// release implements source.
func (b *Block) release(c chunkenc.Chunk) error { return b.pool.Put(c) }

// corrupt implements source.
func (b *Block) corrupt(series storage.SeriesRef, ref chunks.ChunkRef, err error) (*CorruptError, bool) {
	segment, offset := chunks.BlockChunkRef(ref).Unpack()
	c := &CorruptError{Block: b.meta.ULID, Segment: segment + 1, Offset: offset, Err: err}
	var builder labels.ScratchBuilder
	var metas []chunks.Meta
	if b.series(series, &builder, &metas) == nil {
		c.Series = builder.Labels()
	}
	return c, b.opts.Skip != nil && b.opts.Skip(c)
}

// scan is one call of Scan. Its buffers are reused for every series.
type scan struct {
	b       *Block
	rows    *Rows
	keep    Keep
	builder labels.ScratchBuilder
	metas   []chunks.Meta
	lset    []series.Label
}

// series adds the series at which p stands.
func (s *scan) series(p index.Postings) error {
	if err := s.b.series(p.At(), &s.builder, &s.metas); err != nil {
		return s.b.broken(fmt.Sprintf("read series %d", p.At()), err)
	}
	within := slices.DeleteFunc(s.metas, func(m chunks.Meta) bool { return m.MaxTime < s.rows.from || m.MinTime >= s.rows.to })
	if len(within) == 0 {
		return nil
	}
	s.labels()
	for i := 1; i < len(s.lset); i++ {
		if s.lset[i-1].Name == s.lset[i].Name {
			return s.b.broken(fmt.Sprintf("read series %d", p.At()), fmt.Errorf("it has label %s twice", s.lset[i].Name))
		}
	}
	ref, ok, err := s.keep(s.lset, rowBytes+int64(len(within))*placeBytes)
	if err != nil || !ok {
		return err
	}
	gone, err := s.b.tombs.Get(p.At())
	if err != nil {
		return s.b.broken(fmt.Sprintf("read tombstones of series %d", p.At()), err)
	}
	s.rows.add(ref, p.At(), within, gone)
	return nil
}

// labels sets lset to the labels of the series that was read, and the external ones.
func (s *scan) labels() {
	s.lset = s.lset[:0]
	external := s.b.opts.External
	s.builder.Sort()
	s.builder.Labels().Range(func(l labels.Label) {
		for len(external) > 0 && external[0].Name < l.Name {
			s.lset, external = append(s.lset, external[0]), external[1:]
		}
		switch {
		case len(external) > 0 && external[0].Name == l.Name:
			s.lset, external = append(s.lset, external[0]), external[1:]
		case l.Value != "":
			s.lset = append(s.lset, series.Label{Name: l.Name, Value: l.Value})
		}
	})
	s.lset = append(s.lset, external...)
}
