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
