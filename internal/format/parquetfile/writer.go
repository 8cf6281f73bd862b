package parquetfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Writer writes Parquet files, one at a time. It reuses its buffers for later files. After an error
// the file is incomplete and must be discarded.
type Writer struct {
	zstd   *zstd.Encoder
	out    io.Writer
	at     int64 // bytes written
	plain  int   // chunks below this size (bytes) are stored uncompressed
	leaves int   // columns of the schema; 0: unknown
	group  format.RowGroup
	meta   format.FileMetaData
	thr    thriftBuffer
	body   []byte // compressed page
	lits   Literals
	words  Words
	sizes  []int64 // of the pages of the last chunk, in bytes
	err    error   // of a chunk of the current row group

	prefix *Prefix // of the current file, if it was resumed
}

// NewWriter returns a writer that compresses with z, whose concurrency should be 1.
func NewWriter(z *zstd.Encoder) *Writer { return &Writer{zstd: z} }

// Begin starts a file. plain is MinCompress, or 0 to compress every chunk.
func (w *Writer) Begin(out io.Writer, schema []format.SchemaElement, createdBy string, plain int) error {
	w.start(out, createdBy, plain)
	w.meta.Schema = schema
	for i := range schema {
		if !schema[i].NumChildren.Valid {
			w.leaves++
		}
	}
	if err := w.write([]byte(Magic)); err != nil {
		return fmt.Errorf("write magic: %w", err)
	}
	return nil
}

func (w *Writer) start(out io.Writer, createdBy string, plain int) {
	w.out, w.at, w.plain, w.leaves, w.prefix = out, 0, plain, 0, nil
	w.meta = format.FileMetaData{Version: 2, CreatedBy: createdBy}
	w.group, w.err = format.RowGroup{}, nil
}

// Size returns the number of bytes written to the current file.
func (w *Writer) Size() int64 { return w.at }

func (w *Writer) write(b []byte) error {
	n, err := w.out.Write(b)
	w.at += int64(n)
	return err
}

// Add writes a column chunk of the current row group. Chunks must be added in the order of the
// schema's leaves. err is that of building c. EndGroup returns the first error.
func (w *Writer) Add(c Chunk, err error) {
	if w.err == nil && err == nil {
		err = w.add(c)
	}
	w.err = cmp.Or(w.err, err)
}

func (w *Writer) add(c Chunk) error {
	m := format.ColumnMetaData{
		Type: c.Type, PathInSchema: c.Path, Codec: w.codec(&c),
		Encoding:   []format.Encoding{format.Plain, format.RLE, c.Pages[0].Encoding},
		Statistics: format.Statistics{MinValue: c.Min, MaxValue: c.Max},
	}
	begin := w.at
	if c.DictLen > 0 {
		m.DictionaryPageOffset = w.at
		h := format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(c.DictLen), Encoding: format.Plain})}
		if err := w.page(&m, h, Page{Data: c.Dict}); err != nil {
			return fmt.Errorf("write dictionary page of %v: %w", c.Path, err)
		}
	}
	m.DataPageOffset = w.at
	w.sizes = append(w.sizes[:0], w.at-begin)
	for _, p := range c.Pages {
		if !slices.Contains(m.Encoding, p.Encoding) {
			m.Encoding = append(m.Encoding, p.Encoding)
		}
		m.NumValues += int64(p.Values)
		h := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: int32(p.Values), Encoding: p.Encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		})}
		if err := w.page(&m, h, p); err != nil {
			return fmt.Errorf("write data page of %v: %w", c.Path, err)
		}
		w.sizes = append(w.sizes, w.at-begin)
	}
	for i := len(w.sizes) - 1; i > 0; i-- {
		w.sizes[i] -= w.sizes[i-1]
	}
	m.TotalCompressedSize = w.at - begin
	if w.group.Columns == nil {
		w.group.Columns = make([]format.ColumnChunk, 0, w.leaves)
	}
	w.group.Columns = append(w.group.Columns, format.ColumnChunk{MetaData: m})
	w.group.TotalByteSize += m.TotalUncompressedSize
	w.group.TotalCompressedSize += m.TotalCompressedSize
	return nil
}

// PageSizes returns the sizes in bytes, with their headers, of the pages of the chunk that was
// added last: first that of the dictionary, 0 if it has none. They are valid until the next Add.
func (w *Writer) PageSizes() []int64 { return w.sizes }

// Alias adds a column to the current row group that shares the chunk of another one, of, which was
// added before: the same pages have a second name, and may have another logical type in the schema.
// Only the footer grows. An alias has no statistics, because its type may order the values
// differently.
func (w *Writer) Alias(name, of string) {
	for i := range w.group.Columns {
		if m := w.group.Columns[i].MetaData; len(m.PathInSchema) == 1 && m.PathInSchema[0] == of {
			m.PathInSchema, m.Statistics = []string{name}, format.Statistics{}
			w.group.Columns = append(w.group.Columns, format.ColumnChunk{MetaData: m})
			return
		}
	}
	w.err = cmp.Or(w.err, fmt.Errorf("alias %s: the row group has no column %s", name, of))
}

// codec returns the compression of a chunk's pages.
func (w *Writer) codec(c *Chunk) format.CompressionCodec {
	n := len(c.Dict)
	for i := range c.Pages {
		n += len(c.Pages[i].Data)
	}
	if n < w.plain {
		return format.Uncompressed
	}
	return format.Zstd
}

// page writes one page and adds its uncompressed size, including the header, to m.
func (w *Writer) page(m *format.ColumnMetaData, h format.PageHeader, p Page) error {
	body := p.Data
	if len(body) > math.MaxInt32 {
		return fmt.Errorf("page of %d bytes exceeds the format's limit of %d", len(body), math.MaxInt32)
	}
	h.UncompressedPageSize = int32(len(body))
	if m.Codec == format.Zstd {
		switch {
		case p.Literals:
			w.body = w.lits.Append(w.body[:0], body)
		case p.Words:
			w.body = w.words.Append(w.body[:0], body)
		default:
			w.body = w.zstd.EncodeAll(body, w.body[:0])
		}
		body = w.body
	}
	h.CompressedPageSize = int32(len(body))
	h.CRC = int32(checksum.Page(body))
	head := addHeadSum(appendPageHeader(w.thr.out[:0], &h), lastField(&h), w.at)
	m.TotalUncompressedSize += int64(len(head)) + int64(h.UncompressedPageSize)
	w.thr.out = head
	if err := w.write(head); err != nil {
		return err
	}
	return w.write(body)
}

// EndGroup ends the row group of the chunks that were added since the last call, and returns their
// spans, or the first error of Add.
func (w *Writer) EndGroup(rows int) ([]Span, error) {
	if w.err != nil {
		return nil, w.err
	}
	g := &w.group
	g.NumRows = int64(rows)
	g.Ordinal = int16(len(w.meta.RowGroups))
	spans := make([]Span, len(g.Columns))
	for i := range g.Columns {
		m := &g.Columns[i].MetaData
		spans[i] = Span{offset(m), m.TotalCompressedSize}
	}
	switch {
	case w.prefix != nil:
		g.FileOffset = int64(len(Magic))
	case len(spans) > 0:
		g.FileOffset = spans[0].Offset
	}
	w.meta.RowGroups = append(w.meta.RowGroups, *g)
	w.meta.NumRows += int64(rows)
	w.group = format.RowGroup{}
	return spans, nil
}

// End writes the footer with the given key-value metadata. It does not close the io.Writer of the
// file.
func (w *Writer) End(kv []format.KeyValue) error {
	w.meta.KeyValueMetadata = slices.Concat(kv, []format.KeyValue{{Key: KeyChecksums, Value: strconv.Itoa(checksumsVersion)}})
	if w.prefix != nil {
		w.meta.ColumnOrders = w.prefix.orders
	}
	for _, e := range w.meta.Schema {
		if e.Type.Valid {
			w.meta.ColumnOrders = append(w.meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
		}
	}
	footer, err := w.thr.marshalFooter(&w.meta, w.prefix)
	if err != nil {
		return fmt.Errorf("encode footer: %w", err)
	}
	footer = append(footer[:len(footer)-1], sumHead...)
	footer = append(binary.LittleEndian.AppendUint32(footer, structSum(footer, w.at)), 0)
	n := len(footer)
	w.thr.out = append(binary.LittleEndian.AppendUint32(footer, uint32(n)), Magic...)
	if err := w.write(w.thr.out); err != nil {
		return fmt.Errorf("write footer: %w", err)
	}
	return nil
}

// thriftBuffer reuses the buffers of a writer for all pages.
type thriftBuffer struct {
	out  []byte
	head int // bytes of the last footer before its row groups
	enc  *thrift.Encoder
}

func (b *thriftBuffer) Write(p []byte) (int, error) {
	b.out = append(b.out, p...)
	return len(p), nil
}

// marshal encodes v in the compact protocol. The bytes are valid until the next call.
func (b *thriftBuffer) marshal(v any) ([]byte, error) {
	b.out = b.out[:0]
	if b.enc == nil {
		b.enc = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(b))
	}
	err := b.enc.Encode(v)
	return b.out, err
}
