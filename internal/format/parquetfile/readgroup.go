package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Column returns the index of the leaf with a path, or -1.
func (l *Layout) Column(path ...string) int {
	return slices.IndexFunc(l.Leaves, func(e Leaf) bool { return slices.Equal(e.Path, path) })
}

// GroupReader gives access to the column chunks of one row group.
type GroupReader struct {
	Layout *Layout
	Group  *Group

	data []byte
	base int64 // offset of data in the file
}

// InBytes returns a reader of row group i of a file in memory.
func (l *Layout) InBytes(i int, file []byte) GroupReader {
	return GroupReader{Layout: l, Group: &l.Groups[i], data: file}
}

// Read reads the chunks of some leaves of row group i, and the bytes between them, with one call of
// r. It uses buf if that is large enough.
func (l *Layout) Read(i int, r io.ReaderAt, buf []byte, leaves []int) (GroupReader, error) {
	g := GroupReader{Layout: l, Group: &l.Groups[i]}
	if len(leaves) == 0 {
		return g, nil
	}
	first := g.Group.Chunks[leaves[0]].Span
	from, to := first.Offset, first.Offset+first.Length
	for _, leaf := range leaves {
		s := g.Group.Chunks[leaf].Span
		from, to = min(from, s.Offset), max(to, s.Offset+s.Length)
	}
	g.base, g.data = from, slices.Grow(buf[:0], int(to-from))[:to-from]
	if err := readAt(r, g.data, from); err != nil {
		return g, fmt.Errorf("read row group %d: %w", i, err)
	}
	return g, nil
}

// Buffer returns the memory that Read filled, to be passed to the next Read.
func (g *GroupReader) Buffer() []byte { return g.data }

// ReadAt implements io.ReaderAt for the part of the file that Read has read.
func (g *GroupReader) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(g.data).ReadAt(b, at-g.base)
}

// Chunk resets c to the chunk of a leaf.
func (g *GroupReader) Chunk(leaf int, c *ChunkReader) error {
	b, err := g.Stored(leaf)
	if err != nil {
		return err
	}
	return c.Reset(&g.Layout.Leaves[leaf], &g.Group.Chunks[leaf], b)
}

// Stored returns the bytes of the chunk of a leaf, as the file has them.
func (g *GroupReader) Stored(leaf int) ([]byte, error) {
	s := g.Group.Chunks[leaf].Span
	at := s.Offset - g.base
	if at < 0 || at > int64(len(g.data)) || s.Length > int64(len(g.data))-at {
		return nil, fmt.Errorf("%w: column %v was not read", ErrFormat, g.Layout.Leaves[leaf].Path)
	}
	return g.data[at : at+s.Length], nil
}

// AppendDescription appends to b all that the footer has of the chunk of a leaf: two chunks with
// equal descriptions and bytes have equal values, in columns of one name.
func (g *GroupReader) AppendDescription(b []byte, leaf int) []byte {
	l, c := &g.Layout.Leaves[leaf], &g.Group.Chunks[leaf]
	for _, name := range l.Path {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	nested := int64(0)
	if l.Nested {
		nested = 1
	}
	for _, n := range [...]int64{nested, int64(c.typ), int64(c.Codec), c.Values, c.Span.Offset, c.Span.Length, c.dict, c.data} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// Pages resets c to the chunk of a leaf and calls visit with its data pages.
func (g *GroupReader) Pages(leaf int, c *ChunkReader, visit func(*DataPage) error) error {
	if err := g.Chunk(leaf, c); err != nil {
		return err
	}
	return c.Pages(visit)
}

// Int64s appends the values of a flat INT64 leaf. It uses c.
func (g *GroupReader) Int64s(leaf int, c *ChunkReader, dst []int64) ([]int64, error) {
	return appendValues(g, leaf, c, dst, c.Int64s, (*DataPage).Int64s)
}

// Doubles appends the values of a flat DOUBLE leaf. It uses c.
func (g *GroupReader) Doubles(leaf int, c *ChunkReader, dst []float64) ([]float64, error) {
	return appendValues(g, leaf, c, dst, c.Doubles, (*DataPage).Doubles)
}

func appendValues[T any](g *GroupReader, leaf int, c *ChunkReader, dst []T, read func() ([]T, error), add func(p *DataPage, dst []T, n int, dict []T) ([]T, error)) ([]T, error) {
	if err := g.Chunk(leaf, c); err != nil {
		return nil, err
	}
	dict, err := read()
	if err != nil {
		return nil, err
	}
	err = c.Pages(func(p *DataPage) (err error) {
		dst, err = add(p, dst, p.Entries, dict)
		return err
	})
	return dst, err
}
