package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

const (
	// pageWindow is how many bytes of a chunk are read at once at least: several headers, and most
	// pages of a few series.
	pageWindow = 32 << 10
	// headBytes is what a page header without statistics fits into, by far.
	headBytes = 256
)

// zstdMagic begins every zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// PageReader steps over the pages of one chunk of a flat column and decompresses those that are
// asked for. It needs no footer: a page is compressed if its bytes are a zstd frame, and a
// dictionary says that it is one. The zero value is ready; it belongs to one goroutine.
type PageReader struct {
	in      io.ReaderAt
	at, end int64 // where the next page begins in the file, and where the chunk ends
	left    int64 // values that the pages to come have
	head    pageHead
	body    int64   // where the body of the current page begins
	sum     pageSum // of the current page
	next    bool    // head is that of a page that Next is to return

	window   []byte // bytes of the file
	windowAt int64
	dict     []byte
	dictPage dictPage
	plain    []byte
	page     DataPage
}

// dictPage says where the body of a chunk's dictionary lies in the file, and how many bytes and
// values it has. Without values there is none.
type dictPage struct {
	at, compressed, plain, values int64
	sum                           pageSum
}

// Reset begins the chunk of so many values that lies at s in the file. Errors: ErrFormat, and those
// of in.
func (p *PageReader) Reset(in io.ReaderAt, s Span, values int64) error {
	p.in, p.at, p.end, p.left, p.next = in, s.Offset, s.Offset+s.Length, values, false
	p.window, p.windowAt, p.dictPage = p.window[:0], 0, dictPage{}
	if values == 0 {
		return nil
	}
	if err := p.header(); err != nil {
		return err
	}
	if p.head.typ != int64(format.DictionaryPage) {
		p.next = true
		return nil
	}
	if p.head.encoding != int64(format.Plain) || p.head.values < 0 {
		return fmt.Errorf("%w: page of encoding %d is no dictionary", ErrFormat, p.head.encoding)
	}
	p.dictPage = dictPage{p.body, p.head.compressed, p.head.plain, p.head.values, p.sum}
	return nil
}

// Dictionary returns the PLAIN values of the chunk's dictionary, valid until Reset, and their
// number: 0 if it has none.
func (p *PageReader) Dictionary() ([]byte, int, error) {
	d := &p.dictPage
	if d.values == 0 {
		return nil, 0, nil
	}
	b, zipped, err := p.content(p.dict, d.at, d.compressed, d.plain, d.sum)
	if err != nil {
		return nil, 0, fmt.Errorf("read dictionary: %w", err)
	}
	if !zipped {
		b = append(p.dict[:0], b...)
	}
	p.dict = b
	return b, int(d.values), nil
}

// Next reads the header of the next data page and returns how many values it has, 0 after the last.
func (p *PageReader) Next() (int, error) {
	if p.left == 0 {
		return 0, nil
	}
	if !p.next {
		if err := p.header(); err != nil {
			return 0, err
		}
	}
	p.next = false
	switch {
	case p.head.typ != int64(format.DataPage):
		return 0, fmt.Errorf("%w: page of type %d where data should be", ErrFormat, p.head.typ)
	case p.head.values <= 0 || p.head.values > p.left:
		return 0, fmt.Errorf("%w: page of %d values, the chunk has %d left", ErrFormat, p.head.values, p.left)
	}
	p.left -= p.head.values
	return int(p.head.values), nil
}

// Encoding is that of the page whose header Next read.
func (p *PageReader) Encoding() format.Encoding { return format.Encoding(p.head.encoding) }

// Load returns the page whose header Next read. It is valid until the next call.
func (p *PageReader) Load() (*DataPage, error) {
	b, zipped, err := p.content(p.plain, p.body, p.head.compressed, p.head.plain, p.sum)
	if err != nil {
		return nil, err
	}
	if zipped {
		p.plain = b
	}
	p.page = DataPage{Encoding: format.Encoding(p.head.encoding), Entries: int(p.head.values), Values: b, DictEntries: int(p.dictPage.values)}
	return &p.page, nil
}

// header reads the header of the next page and steps over the page.
func (p *PageReader) header() error {
	b, err := p.bytes(p.at, min(headBytes, p.end-p.at))
	if err != nil {
		return err
	}
	n, err := p.head.read(b)
	if err != nil {
		return fmt.Errorf("%w: decode page header: %w", ErrFormat, err)
	}
	if p.sum, err = p.head.check(b[:n], p.at); err != nil {
		return err
	}
	p.body = p.at + int64(n)
	if c := p.head.compressed; c < 0 || c > MaxPage || c > p.end-p.body {
		return fmt.Errorf("%w: page of %d bytes in a chunk that has %d left", ErrFormat, c, p.end-p.body)
	}
	p.at = p.body + p.head.compressed
	return nil
}

// content returns the plain bytes of the page whose body is the compressed bytes at an offset: in
// dst, if they are zipped.
func (p *PageReader) content(dst []byte, at, compressed, plain int64, sum pageSum) (b []byte, zipped bool, err error) {
	if b, err = p.bytes(at, compressed); err != nil {
		return nil, false, err
	}
	if err := sum.checkPage(b, at); err != nil {
		return nil, false, err
	}
	if zipped = bytes.HasPrefix(b, zstdMagic); zipped {
		if b, err = decompress(dst, b, plain); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if int64(len(b)) != plain {
		return nil, false, fmt.Errorf("%w: page has %d bytes, its header says %d", ErrFormat, len(b), plain)
	}
	return b, zipped, nil
}

// bytes returns n bytes at an offset of the file, valid until the next call. They lie within the
// chunk.
func (p *PageReader) bytes(at, n int64) ([]byte, error) {
	if at < p.windowAt || at+n > p.windowAt+int64(len(p.window)) {
		size := min(max(n, pageWindow), p.end-at)
		p.window = slices.Grow(p.window[:0], int(size))[:size]
		p.windowAt = at
		if k, err := p.in.ReadAt(p.window, at); k < len(p.window) {
			p.window = p.window[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("read page: %w", err)
		}
	}
	from := at - p.windowAt
	return p.window[from : from+n], nil
}
