package block

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"

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

// errEnd reports that there are no more row groups.
var errEnd = errors.New("no more row groups")

// column names a flat column that a cursor reads.
type column struct {
	name string
	typ  format.Type
}

// groups iterates over the row groups of the files of one kind. It reads some columns, with those
// that lie between them, in one read of the file per row group.
type groups struct {
	r       *Reader
	files   []*File // the current one first
	columns []column
	whole   bool // read the other columns, too

	open   *openFile // files[0], or nil
	leaves []int     // by column
	read   []int     // leaves that are read
	at     int       // row group of files[0] that comes next
	group  parquetfile.GroupReader
	chunk  parquetfile.ChunkReader
}

// next returns the row group that comes next, or errEnd.
func (g *groups) next() (*RowGroup, error) {
	for len(g.files) > 0 {
		if g.at < len(g.files[0].RowGroups) {
			return &g.files[0].RowGroups[g.at], nil
		}
		g.files, g.open, g.at = g.files[1:], nil, 0
	}
	return nil, errEnd
}

// load reads the next row group; next must have returned it. int64s, doubles and
// blobs then read its columns.
func (g *groups) load() error {
	f := g.files[0]
	if g.open == nil {
		var err error
		if g.open, err = g.r.open(f); err != nil {
			return err
		}
		// Look the columns up in the file.
		g.leaves = g.leaves[:0]
		for _, c := range g.columns {
			leaf := g.open.layout.Column(c.name)
			if leaf < 0 || g.open.layout.Leaves[leaf].Type != c.typ || g.open.layout.Leaves[leaf].Nested {
				return f.fail(fmt.Errorf("%w: no column %s of type %v", ErrFormat, c.name, c.typ))
			}
			g.leaves = append(g.leaves, leaf)
		}
		g.read = g.leaves
		if g.whole {
			g.read = make([]int, len(g.open.layout.Leaves))
			for leaf := range g.read {
				g.read[leaf] = leaf
			}
		}
	}
	group, err := g.open.layout.Read(g.at, g.open.in, g.group.Buffer(), g.read)
	if err != nil {
		return f.fail(err)
	}
	g.group = group
	g.at++
	return nil
}

func (g *groups) failed(i int, err error) error {
	if err != nil {
		return g.open.fail(fmt.Errorf("column %s: %w", g.columns[i].name, err))
	}
	return nil
}

// int64s appends column i of the loaded row group.
func (g *groups) int64s(dst []int64, i int) ([]int64, error) {
	dst, err := g.group.Int64s(g.leaves[i], &g.chunk, dst)
	return dst, g.failed(i, err)
}

// doubles appends column i of the loaded row group.
func (g *groups) doubles(dst []float64, i int) ([]float64, error) {
	dst, err := g.group.Doubles(g.leaves[i], &g.chunk, dst)
	return dst, g.failed(i, err)
}

// blobs appends column i of the loaded row group. The strings own their memory.
func (g *groups) blobs(dst []string, i int) ([]string, error) {
	err := g.group.Pages(g.leaves[i], &g.chunk, func(p *parquetfile.DataPage) (err error) {
		p.Values = slices.Clone(p.Values)
		dst, err = p.Strings(dst, p.Entries)
		return err
	})
	return dst, g.failed(i, err)
}
