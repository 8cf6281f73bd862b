package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

const (
	// pageWindow is the least number of bytes that are read from a chunk at once: several headers,
	// and most pages of a few series.
	pageWindow = 64 << 10
	// headBytes bounds a page header without statistics, with a wide margin.
	headBytes = 256
)

// zstdMagic is the beginning of every zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// PageReader iterates over the pages of a chunk and decompresses only those that Load returns. It
// needs no footer: a page is compressed if its bytes are a zstd frame, and the header of a
// dictionary page has its own type. The zero value is ready. It is not safe for concurrent use.
type PageReader struct {
	in      io.ReaderAt // nil: window has the whole chunk
	raw     bool        // no page is compressed, whatever its bytes are
	at, end int64       // offset of the next page in the file, and end of the pages that may be read
	left    int64       // values of the pages after the current one
	head    pageHead
	body    int64   // offset of the body of the current page
	sum     pageSum // of the current page
	next    bool    // head is the header of a page that Next has not returned yet

	window   []byte // bytes of the file
	windowAt int64
	dict     []byte
	dictPage dictPage
	plain    []byte
	page     DataPage
}

// dictPage is the position of the body of a chunk's dictionary in the file, and its numbers of
// bytes and values. With 0 values the chunk has none.
type dictPage struct {
	at, compressed, plain, values int64
	sum                           pageSum
	end                           int64 // what follows it may not be read, unless it is 0
}

// Reset starts the chunk at s, which has the given number of values. Errors: ErrFormat, and those
// of in.
func (p *PageReader) Reset(in io.ReaderAt, s Span, values int64) error {
	p.in, p.raw, p.window, p.windowAt = in, false, p.window[:0], 0
	return p.begin(s, values)
}

// resetBytes is Reset for a chunk in memory, whose bytes are b.
func (p *PageReader) resetBytes(b []byte, info *ChunkInfo) error {
	p.in, p.raw, p.window, p.windowAt = nil, info.Codec == format.Uncompressed, b, info.Span.Offset
	return p.begin(Span{info.Span.Offset, int64(len(b))}, info.Values)
}

func (p *PageReader) begin(s Span, values int64) error {
	p.at, p.end, p.left, p.next, p.dictPage = s.Offset, s.Offset+s.Length, values, false, dictPage{}
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
		return fmt.Errorf("%w: page with encoding %d is not a dictionary", ErrFormat, p.head.encoding)
	}
	p.dictPage = dictPage{p.body, p.head.compressed, p.head.plain, p.head.values, p.sum, 0}
	return nil
}

// ResetPages starts a chunk whose data pages Jump finds. dict is where its dictionary page lies; its
// length is 0 if the chunk has none. Nothing else is read of the file. Errors are those of Reset.
func (p *PageReader) ResetPages(in io.ReaderAt, dict Span) error {
	if err := p.Reset(in, dict, min(dict.Length, 1)); err != nil {
		return err
	}
	if p.next {
		return fmt.Errorf("%w: no dictionary where one is expected", ErrFormat)
	}
	p.left, p.dictPage.end = 0, dict.Offset+dict.Length
	return nil
}

// Jump moves to the page at an offset of the file. From there to end, also an offset, are pages of
// the given number of values.
func (p *PageReader) Jump(at, end, values int64) {
	p.at, p.end, p.left, p.next = at, end, values, false
}

// Extend lets the reader go on to end, an offset of the file, after as many values.
func (p *PageReader) Extend(end, values int64) { p.end, p.left = end, p.left+values }

// Dictionary returns the PLAIN values of the chunk's dictionary, valid until Reset, and their
// number, which is 0 if there is no dictionary.
func (p *PageReader) Dictionary() ([]byte, int, error) {
	d := &p.dictPage
	if d.values == 0 {
		return nil, 0, nil
	}
	b, zipped, err := p.content(p.dict, d.at, d.compressed, d.plain, d.sum)
	if err != nil {
		return nil, 0, fmt.Errorf("read dictionary: %w", err)
	}
	if p.in == nil { // the caller of ChunkReader.Reset owns it
		p.dict = nil
		return b, int(d.values), nil
	}
	if !zipped { // the window moves on
		b = append(p.dict[:0], b...)
	}
	p.dict = b
	return b, int(d.values), nil
}

// Next reads the header of the next data page and returns its number of values, 0 after the last
// page.
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
		return 0, fmt.Errorf("%w: page of type %d, expected a data page", ErrFormat, p.head.typ)
	case p.head.values <= 0 || p.head.values > p.left:
		return 0, fmt.Errorf("%w: page of %d values, the chunk has %d left", ErrFormat, p.head.values, p.left)
	}
	p.left -= p.head.values
	return int(p.head.values), nil
}

// Load returns the page whose header Next read. The page is valid until the next call.
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

// header reads the header of the next page and advances to the page after it.
func (p *PageReader) header() error {
	most := p.end - p.at
	if p.in != nil {
		most = min(most, headBytes)
	}
	b, err := p.bytes(p.at, most)
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
		return fmt.Errorf("%w: page of %d bytes in a chunk with %d left", ErrFormat, c, p.end-p.body)
	}
	p.at = p.body + p.head.compressed
	return nil
}

// content returns the uncompressed bytes of a page, whose body has compressed bytes at an offset.
// If zipped, they are in dst.
func (p *PageReader) content(dst []byte, at, compressed, plain int64, sum pageSum) (b []byte, zipped bool, err error) {
	if b, err = p.bytes(at, compressed); err != nil {
		return nil, false, err
	}
	if err := sum.checkPage(b, at); err != nil {
		return nil, false, err
	}
	if zipped = !p.raw && bytes.HasPrefix(b, zstdMagic); zipped {
		if b, err = decompress(dst, b, plain); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if int64(len(b)) != plain {
		return nil, false, fmt.Errorf("%w: page has %d bytes, its header has %d", ErrFormat, len(b), plain)
	}
	return b, zipped, nil
}

// bytes returns n bytes at an offset of the file, which must be within the pages that may be read.
// They are valid until the next call.
func (p *PageReader) bytes(at, n int64) ([]byte, error) {
	if at < p.windowAt || at+n > p.windowAt+int64(len(p.window)) {
		end := p.end
		if at < p.dictPage.end {
			end = p.dictPage.end
		}
		size := min(max(n, pageWindow), end-at)
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

// Bytes of Thrift's compact protocol. A field begins with its distance from the field before, four
// bits, and its type.
const (
	nextInt = 1<<4 | typeInt
	stop    = 0 // the end of a struct
)

// The numbers of a page header's fields that hold the header of a data page or of a dictionary.
const (
	dataField = 5
	dictField = 7
)

// noStatistics are the statistics of a data page: they say that it has no null.
const noStatistics = "\x1c\x36\x00\x00"

// appendPageHeader appends the header of a data page or of a dictionary page in Thrift's compact
// protocol: the bytes that parquet-go's encoder writes, which finds the fields by reflection. A
// small segment has more than a hundred pages.
func appendPageHeader(b []byte, h *format.PageHeader) []byte {
	b = appendInt(append(b, nextInt), int32(h.Type))
	b = appendInt(append(b, nextInt), h.UncompressedPageSize)
	b = appendInt(append(b, nextInt), h.CompressedPageSize)
	last := 3
	if h.CRC != 0 { // optional
		b, last = appendInt(append(b, nextInt), h.CRC), 4
	}
	if d := h.DictionaryPageHeader; d.Valid {
		b = append(b, byte((dictField-last)<<4|typeStruct))
		b = appendInt(append(b, nextInt), d.V.NumValues)
		b = appendInt(append(b, nextInt), int32(d.V.Encoding))
		return append(b, stop, stop)
	}
	d := h.DataPageHeader
	b = append(b, byte((dataField-last)<<4|typeStruct))
	b = appendInt(append(b, nextInt), d.V.NumValues)
	b = appendInt(append(b, nextInt), int32(d.V.Encoding))
	b = appendInt(append(b, nextInt), int32(d.V.DefinitionLevelEncoding))
	b = appendInt(append(b, nextInt), int32(d.V.RepetitionLevelEncoding))
	b = append(b, noStatistics...)
	return append(b, stop, stop)
}

// lastField returns the number of the last field that appendPageHeader writes.
func lastField(h *format.PageHeader) int {
	if h.DictionaryPageHeader.Valid {
		return dictField
	}
	return dataField
}

func appendInt(b []byte, v int32) []byte { return binary.AppendVarint(b, int64(v)) }

// pageHead is the used part of a PageHeader.
type pageHead struct {
	typ, plain, compressed int64
	values, encoding       int64
	crc                    int64
	hasCRC                 bool
	sum                    int64 // its checksum
	sumAt, sumEnd          int   // where that begins and ends in the header, in bytes; 0 = it has none
}

// read decodes the header at the start of b and returns its length.
func (h *pageHead) read(b []byte) (int, error) {
	*h = pageHead{typ: -1, plain: -1, compressed: -1, values: -1, encoding: -1}
	s := skimmer{b: b}
	for f := (field{}); s.next(&f); {
		switch {
		case f.id == 1:
			h.typ = s.integer(f.typ)
		case f.id == 2:
			h.plain = s.integer(f.typ)
		case f.id == 3:
			h.compressed = s.integer(f.typ)
		case f.id == 4:
			h.crc, h.hasCRC = s.integer(f.typ), true
		case (f.id == dataField || f.id == dictField) && f.typ == typeStruct:
			h.inner(&s)
		case f.id > lastHeadID && f.typ == typeInt: // headSumID, unless a field before it has a damaged number
			h.sumAt = s.at
			h.sum = s.integer(f.typ)
			h.sumEnd = s.at
		default:
			s.skip(f.typ, 1)
		}
	}
	return s.at, s.err
}

// inner decodes a DataPageHeader or DictionaryPageHeader.
func (h *pageHead) inner(s *skimmer) {
	for f := (field{}); s.next(&f); {
		switch f.id {
		case 1:
			h.values = s.integer(f.typ)
		case 2:
			h.encoding = s.integer(f.typ)
		default:
			s.skip(f.typ, 2)
		}
	}
}
