package block

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// Source opens the files of one block. The files stay open as long as the Reader and its cursors
// are in use.
type Source interface {
	Open(name string) (r io.ReaderAt, size int64, err error)
}

const (
	maxMetaBytes = 256 << 20 // of meta.json
	maxGroupRows = 16 << 20  // of a row group: what a cursor may have in memory
)

// Reader reads a block. It compares every file with meta.json, so a file that was truncated, or is
// that of another block, is an error and not a short answer. Its methods may be called concurrently
// if the Source's may.
type Reader struct {
	src   Source
	meta  Meta
	moved uint64 // by how much a series_id may be above that of the labels
}

// Open reads meta.json and checks that it is consistent. Errors: ErrFormat, and those of src.
func Open(src Source) (*Reader, error) {
	in, size, err := src.Open(MetaFile)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", MetaFile, err)
	}
	if size > maxMetaBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrFormat, MetaFile, size, maxMetaBytes)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(in, 0, size), b); err != nil {
		return nil, fmt.Errorf("read %s: %w", MetaFile, err)
	}
	m, err := ReadMeta(b)
	if err != nil {
		return nil, err
	}
	return OpenWith(src, m)
}

// OpenWith is Open for a block whose meta.json was read before.
func OpenWith(src Source, m Meta) (*Reader, error) {
	r := &Reader{src: src, meta: m}
	if err := r.meta.check(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFormat, MetaFile, err)
	}
	r.moved = uint64(r.meta.Series)
	return r, nil
}

// Meta returns the content of meta.json. It must not be changed.
func (r *Reader) Meta() *Meta { return &r.meta }

// check holds the counts of a meta.json against one another.
func (m *Meta) check() error {
	for _, k := range []struct {
		what  string
		files []*File
		rows  int64
	}{
		{"series", m.one(SeriesFile), m.Series},
		{"float samples", m.numbered(SamplesFile), m.Floats},
		{"histograms", m.numbered(HistogramsFile), m.Hists},
		{"exemplars", m.one(ExemplarsFile), m.Exemplars},
		{"metadata", m.one(MetadataFile), m.Metadata},
	} {
		rows := int64(0)
		for _, f := range k.files {
			n, err := f.check(rows)
			if err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
			rows += n
		}
		if rows != k.rows {
			return fmt.Errorf("%d %s, its files have %d", k.rows, k.what, rows)
		}
	}
	return nil
}

// check returns the rows of a file of which the first is the given one of its kind.
func (f *File) check(first int64) (int64, error) {
	rows := int64(0)
	for _, g := range f.RowGroups {
		if g.Rows <= 0 || g.Rows > maxGroupRows {
			return 0, fmt.Errorf("row group of %d rows, the limit is %d", g.Rows, maxGroupRows)
		}
		if g.FirstRow != first+rows {
			return 0, fmt.Errorf("row group begins at row %d instead of %d", g.FirstRow, first+rows)
		}
		rows += g.Rows
	}
	if rows != f.Rows {
		return 0, fmt.Errorf("%d rows, its row groups have %d", f.Rows, rows)
	}
	return rows, nil
}

// one returns the file of a name, if the block has it.
func (m *Meta) one(name string) []*File {
	if f := m.File(name); f != nil {
		return []*File{f}
	}
	return nil
}

// numbered returns the files of a kind in their order.
func (m *Meta) numbered(name func(int) string) []*File {
	var out []*File
	for {
		f := m.File(name(len(out)))
		if f == nil {
			return out
		}
		out = append(out, f)
	}
}

// openFile is a Parquet file of a block.
type openFile struct {
	*File
	in     io.ReaderAt
	layout *parquetfile.Layout
}

// open opens a file and checks that it is the one which meta.json describes.
func (r *Reader) open(f *File) (*openFile, error) {
	in, size, err := r.src.Open(f.Name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.Name, err)
	}
	if size != f.Bytes {
		return nil, fmt.Errorf("%w: %s has %d bytes, meta.json records %d", ErrFormat, f.Name, size, f.Bytes)
	}
	l, err := parquetfile.ReadLayout(in, size)
	if err != nil {
		return nil, f.fail(err)
	}
	o := &openFile{File: f, in: in, layout: l}
	if err := o.check(); err != nil {
		return nil, f.fail(err)
	}
	return o, nil
}

func (o *openFile) check() error {
	v, ok := o.layout.KeyValues[KeyVersion]
	if !ok {
		return fmt.Errorf("%w: it has no version", ErrFormat)
	}
	if err := checksum.CheckVersion("blocks", v, FormatVersion); err != nil {
		return err
	}
	if len(o.layout.Groups) != len(o.RowGroups) {
		return fmt.Errorf("%w: %d row groups, meta.json records %d", ErrFormat, len(o.layout.Groups), len(o.RowGroups))
	}
	for i := range o.RowGroups {
		g, said := &o.layout.Groups[i], &o.RowGroups[i]
		same := g.Rows == said.Rows && slices.EqualFunc(g.Chunks, said.Columns, func(a parquetfile.ChunkInfo, b Chunk) bool {
			return Chunk{a.Span.Offset, a.Span.Length} == b
		})
		if !same {
			return fmt.Errorf("%w: row group %d differs from its entry in meta.json", ErrFormat, i)
		}
	}
	return nil
}

// fail names the file in an error, and makes what is wrong with its bytes an ErrFormat.
func (f *File) fail(err error) error {
	broken := errors.Is(err, parquetfile.ErrFormat) || errors.Is(err, segment.ErrFormat)
	if broken && !errors.Is(err, ErrFormat) {
		return fmt.Errorf("%w: read %s: %w", ErrFormat, f.Name, err)
	}
	return fmt.Errorf("read %s: %w", f.Name, err)
}
