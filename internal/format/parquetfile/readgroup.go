package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
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

// MaxPage bounds the size of a decompressed page, in bytes.
const MaxPage = 256 << 20

// unzip returns the shared decoder of all pages. Its DecodeAll keeps no state and is safe for
// concurrent use.
var unzip = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxPage), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
})

// ChunkReader reads the pages of column chunks in memory, one chunk at a time. The zero value is
// ready. It is not safe for concurrent use.
type ChunkReader struct {
	// PLAIN values of the chunk's dictionary, nil if it has none; owned by the caller
	Dict    []byte
	DictLen int
	// Room is memory for the dictionary of the next chunk, which is used if that is compressed and
	// fits; Reset takes it.
	Room []byte

	pages  PageReader
	nested bool
}

// DataPage is a data page. It is valid until the next one is read.
type DataPage struct {
	Encoding    format.Encoding
	Entries     int    // values and empty lists
	Repetition  []byte // hybrid-coded levels of one bit; nil if the column is not nested
	Definition  []byte
	Values      []byte
	DictEntries int // number of entries of the chunk's dictionary
}

// Reset starts the chunk whose bytes are b and reads its dictionary.
func (c *ChunkReader) Reset(leaf *Leaf, info *ChunkInfo, b []byte) (err error) {
	c.nested, c.pages.dict = leaf.Nested, c.Room
	c.Dict, c.DictLen, c.Room = nil, 0, nil
	if info.Codec != format.Uncompressed && info.Codec != format.Zstd {
		return fmt.Errorf("%w: compression %v of %v is not supported", ErrFormat, info.Codec, leaf.Path)
	}
	if err = c.pages.resetBytes(b, info); err == nil {
		c.Dict, c.DictLen, err = c.pages.Dictionary()
	}
	if err != nil {
		return fmt.Errorf("read dictionary of %v: %w", leaf.Path, err)
	}
	return nil
}

// Pages calls visit with the data pages, which are valid until the next one.
func (c *ChunkReader) Pages(visit func(*DataPage) error) error {
	return c.PagesWith(func(int, int) bool { return true }, visit)
}

// PagesWith is Pages for the data pages for which wanted is true. It gets the positions of the
// first entry of a page, among the entries of the chunk, and of the entry after the last one. Pages
// that are not wanted are neither checked nor decompressed.
func (c *ChunkReader) PagesWith(wanted func(from, to int) bool, visit func(*DataPage) error) error {
	for at := 0; ; {
		n, err := c.pages.Next()
		if err != nil {
			return fmt.Errorf("read page: %w", err)
		}
		if n == 0 {
			return nil
		}
		if at += n; !wanted(at-n, at) {
			continue
		}
		p, err := c.pages.Load()
		if err == nil && c.nested {
			err = p.splitLevels()
		}
		if err != nil {
			return fmt.Errorf("read page: %w", asFormat(err))
		}
		if err := visit(p); err != nil {
			return err
		}
	}
}

// AsFormat wraps an error about the bytes of a Parquet file in own, the ErrFormat of what the file
// is. It returns other errors as they are.
func AsFormat(own, err error) error {
	if errors.Is(err, ErrFormat) && !errors.Is(err, own) {
		return fmt.Errorf("%w: %w", own, err)
	}
	return err
}

// asFormat wraps an error in ErrFormat. It returns nil for none.
func asFormat(err error) error {
	if err == nil || errors.Is(err, ErrFormat) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// splitLevels takes the levels from the front of the values.
func (p *DataPage) splitLevels() (err error) {
	if p.Repetition, p.Values, err = levels(p.Values); err == nil {
		p.Definition, p.Values, err = levels(p.Values)
	}
	return err
}

// zstdSlack is room behind a page with which the decoder copies without a check of the end. The
// memory has it twice: of a frame that is longer than its header says, the decoder may copy as much
// beyond the room.
const zstdSlack = 16

// decompress decodes a zstd frame into the memory of dst, all of which the result keeps for the
// next page, or into more. size is the size in its header.
func decompress(dst, b []byte, size int64) ([]byte, error) {
	const maxRatio = 1 << 16 // zstd cannot compress more, so that a wrong size cannot claim memory
	if size < 0 || size > MaxPage || size > int64(len(b))*maxRatio {
		return nil, fmt.Errorf("page of %d bytes, compressed to %d: the limit is %d bytes", size, len(b), MaxPage)
	}
	z, err := unzip()
	if err != nil {
		return nil, fmt.Errorf("create zstd decoder: %w", err)
	}
	dst = slices.Grow(dst[:0], int(size)+2*zstdSlack)
	out, err := z.DecodeAll(b, dst[:0:size+zstdSlack])
	if err != nil {
		return nil, fmt.Errorf("decompress page: %w", err)
	}
	if len(out) > 0 && int64(len(out)) <= size && &out[0] == &dst[:1][0] {
		return dst[:len(out)], nil
	}
	return out, nil
}

// levels splits the length-prefixed levels from the front of a page.
func levels(b []byte) (levels, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errors.New("levels are cut off")
	}
	n := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 | int64(b[3])<<24
	if n > int64(len(b)-4) {
		return nil, nil, fmt.Errorf("levels of %d bytes in a page with %d left", n, len(b)-4)
	}
	return b[4 : 4+n], b[4+n:], nil
}
