package parquetfile

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// MaxPage bounds the size of a decompressed page, in bytes.
const MaxPage = 256 << 20

// unzip returns the shared decoder of all pages. Its DecodeAll keeps no state and is safe for
// concurrent use.
var unzip = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxPage), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
})

// ChunkReader reads the pages of column chunks, one chunk at a time. The zero value is ready. It is
// not safe for concurrent use.
type ChunkReader struct {
	// PLAIN values of the chunk's dictionary, nil if it has none; owned by the caller
	Dict    []byte
	DictLen int
	// Room is memory for the dictionary of the next chunk, which is used if that is compressed and
	// fits; Reset takes it.
	Room []byte

	rest   []byte
	at     int64 // offset of rest in the file
	codec  format.CompressionCodec
	nested bool
	left   int64 // values of the pages after the current one
	body   []byte
	head   pageHead
	page   DataPage // that was read last
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
func (c *ChunkReader) Reset(leaf *Leaf, info *ChunkInfo, b []byte) error {
	room := c.Room
	c.Dict, c.DictLen, c.Room = nil, 0, nil
	c.rest, c.at, c.codec, c.nested, c.left = b, info.Span.Offset, info.Codec, leaf.Nested, info.Values
	if info.dict == 0 {
		return nil
	}
	stored, err := c.open()
	var body []byte
	if err == nil {
		body, err = c.content(room, stored)
	}
	if err == nil && (c.head.typ != int64(format.DictionaryPage) || c.head.encoding != int64(format.Plain)) {
		err = fmt.Errorf("page of type %d and encoding %d is not a dictionary", c.head.typ, c.head.encoding)
	}
	if err != nil {
		return fmt.Errorf("read dictionary of %v: %w", leaf.Path, asFormat(err))
	}
	c.Dict, c.DictLen = body, int(c.head.values)
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
	for at := 0; c.left > 0; at += int(c.head.values) {
		p, err := c.dataPage(func(n int) bool { return wanted(at, at+n) })
		if err != nil {
			return fmt.Errorf("read page: %w", asFormat(err))
		}
		if p == nil {
			continue
		}
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}

// asFormat wraps an error in ErrFormat. It returns nil for none.
func asFormat(err error) error {
	if err == nil || errors.Is(err, ErrFormat) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// dataPage reads the next data page; nil unless wanted, which gets its number of entries, is true.
func (c *ChunkReader) dataPage(wanted func(n int) bool) (*DataPage, error) {
	stored, err := c.open()
	if err != nil {
		return nil, err
	}
	switch {
	case c.head.typ != int64(format.DataPage):
		return nil, fmt.Errorf("page of type %d, expected a data page", c.head.typ)
	case c.head.values <= 0 || c.head.values > c.left:
		return nil, fmt.Errorf("page of %d values, the chunk has %d left", c.head.values, c.left)
	}
	c.left -= c.head.values
	if !wanted(int(c.head.values)) {
		return nil, nil
	}
	body, err := c.content(c.body, stored)
	if err != nil {
		return nil, err
	}
	if c.codec != format.Uncompressed {
		c.body = body
	}
	c.page = DataPage{Encoding: format.Encoding(c.head.encoding), Entries: int(c.head.values), DictEntries: c.DictLen}
	p := &c.page
	if c.nested {
		if p.Repetition, body, err = levels(body); err != nil {
			return nil, err
		}
		if p.Definition, body, err = levels(body); err != nil {
			return nil, err
		}
	}
	p.Values = body
	return p, nil
}

// storedPage is the body of a page, as the file has it.
type storedPage struct {
	body []byte
	at   int64 // offset in the file
	sum  pageSum
}

// open reads the header of the next page.
func (c *ChunkReader) open() (p storedPage, err error) {
	n, err := c.head.read(c.rest)
	if err != nil {
		return p, fmt.Errorf("decode page header: %w", err)
	}
	if p.sum, err = c.head.check(c.rest[:n], c.at); err != nil {
		return p, err
	}
	p.body, p.at = c.rest[n:], c.at+int64(n)
	if c.head.compressed < 0 || c.head.compressed > int64(len(p.body)) {
		return p, fmt.Errorf("page of %d bytes in a chunk with %d left", c.head.compressed, len(p.body))
	}
	p.body, c.rest = p.body[:c.head.compressed], p.body[c.head.compressed:]
	c.at = p.at + int64(len(p.body))
	return p, nil
}

// content checks the page that was opened last, and decompresses it into dst.
func (c *ChunkReader) content(dst []byte, p storedPage) (body []byte, err error) {
	body = p.body
	if err := p.sum.checkPage(body, p.at); err != nil {
		return nil, err
	}
	switch c.codec {
	case format.Uncompressed:
	case format.Zstd:
		if body, err = decompress(dst, body, c.head.plain); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("compression %v is not supported", c.codec)
	}
	if int64(len(body)) != c.head.plain {
		return nil, fmt.Errorf("page has %d bytes, its header has %d", len(body), c.head.plain)
	}
	return body, nil
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
