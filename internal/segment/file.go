package segment

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// magic begins and ends every Parquet file.
const magic = "PAR1"

// minCompress is the number of page bytes in a column chunk below which it is stored uncompressed: a zstd frame would not pay. It
// holds for files of one row group; in others all chunks are compressed, for some readers take a column's codec from its first chunk.
const minCompress = 64

// fileWriter lays pages into one Parquet file in memory. parquet-go supplies the footer's structures, their encoding and the value
// encodings; the pages are laid here, because its writers take rows or whole columns of values, and a segment's label columns are
// cheaper as runs of dictionary indexes that are known beforehand.
type fileWriter struct {
	buf   []byte
	zstd  *zstd.Encoder
	plain int // chunks below this size (bytes) are stored uncompressed
	group format.RowGroup
	meta  format.FileMetaData
	thr   thriftBuffer
}

// chunk is one column chunk to be written: an optional dictionary page and one data page, uncompressed.
type chunk struct {
	path     []string
	typ      format.Type
	encoding format.Encoding
	dict     []byte // PLAIN values; used if dictLen > 0
	dictLen  int
	data     []byte // levels and values of the data page
	values   int    // including nulls and empty lists
	min, max []byte // statistics; nil = none
}

// begin starts a file of one or of several row groups.
func (f *fileWriter) begin(schema []format.SchemaElement, oneGroup bool) {
	f.plain = 0
	if oneGroup {
		f.plain = minCompress
	}
	f.buf = append(f.buf[:0], magic...)
	f.meta = format.FileMetaData{Version: 2, Schema: schema, CreatedBy: createdBy}
	f.group = format.RowGroup{}
}

// endGroup closes the row group that the chunks written since the last call form.
func (f *fileWriter) endGroup(rows int) {
	g := &f.group
	g.NumRows = int64(rows)
	g.Ordinal = int16(len(f.meta.RowGroups))
	if len(g.Columns) > 0 {
		g.FileOffset = firstPage(&g.Columns[0].MetaData)
	}
	f.meta.RowGroups = append(f.meta.RowGroups, *g)
	f.meta.NumRows += int64(rows)
	f.group = format.RowGroup{}
}

func firstPage(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset > 0 {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// end writes the footer and returns the file, which is valid until the next begin.
func (f *fileWriter) end(kv []format.KeyValue) ([]byte, error) {
	f.meta.KeyValueMetadata = kv
	for _, e := range f.meta.Schema {
		if e.Type.Valid {
			f.meta.ColumnOrders = append(f.meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
		}
	}
	footer, err := f.thr.marshal(&f.meta)
	if err != nil {
		return nil, fmt.Errorf("encode footer: %w", err)
	}
	f.buf = append(f.buf, footer...)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, uint32(len(footer)))
	f.buf = append(f.buf, magic...)
	return f.buf, nil
}

// add writes a column chunk of the current row group.
func (f *fileWriter) add(c chunk) error {
	codec := format.Zstd
	if len(c.dict)+len(c.data) < f.plain {
		codec = format.Uncompressed
	}
	m := format.ColumnMetaData{
		Type: c.typ, PathInSchema: c.path, Codec: codec, NumValues: int64(c.values),
		Encoding:   []format.Encoding{format.Plain, format.RLE, c.encoding},
		Statistics: format.Statistics{MinValue: c.min, MaxValue: c.max},
	}
	begin := len(f.buf)
	if c.dictLen > 0 {
		m.DictionaryPageOffset = int64(len(f.buf))
		h := format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: int32(c.dictLen), Encoding: format.Plain})}
		raw, err := f.page(h, c.dict, codec)
		if err != nil {
			return fmt.Errorf("write dictionary page of %v: %w", c.path, err)
		}
		m.TotalUncompressedSize += int64(raw)
	}
	m.DataPageOffset = int64(len(f.buf))
	h := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: int32(c.values), Encoding: c.encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
	})}
	raw, err := f.page(h, c.data, codec)
	if err != nil {
		return fmt.Errorf("write data page of %v: %w", c.path, err)
	}
	m.TotalUncompressedSize += int64(raw)
	m.TotalCompressedSize = int64(len(f.buf) - begin)
	f.group.Columns = append(f.group.Columns, format.ColumnChunk{MetaData: m})
	f.group.TotalByteSize += m.TotalUncompressedSize
	f.group.TotalCompressedSize += m.TotalCompressedSize
	return nil
}

// page writes one page and returns its uncompressed size with the header, in bytes.
func (f *fileWriter) page(h format.PageHeader, body []byte, codec format.CompressionCodec) (int, error) {
	if len(body) > math.MaxInt32 {
		return 0, fmt.Errorf("page of %d bytes exceeds the format's limit of %d", len(body), math.MaxInt32)
	}
	h.UncompressedPageSize = int32(len(body))
	out := body
	if codec == format.Zstd {
		out = f.zstd.EncodeAll(body, f.thr.scratch[:0])
		f.thr.scratch = out
	}
	h.CompressedPageSize = int32(len(out))
	head, err := f.thr.marshal(&h)
	if err != nil {
		return 0, fmt.Errorf("encode page header: %w", err)
	}
	f.buf = append(append(f.buf, head...), out...)
	return len(head) + len(body), nil
}

// thriftBuffer keeps the buffers of one writer across pages.
type thriftBuffer struct {
	out     []byte
	scratch []byte // compressed page bytes
	enc     *thrift.Encoder
}

func (b *thriftBuffer) Write(p []byte) (int, error) {
	b.out = append(b.out, p...)
	return len(p), nil
}

// marshal encodes v in the compact protocol; the bytes are valid until the next call.
func (b *thriftBuffer) marshal(v any) ([]byte, error) {
	b.out = b.out[:0]
	if b.enc == nil {
		b.enc = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(b))
	}
	err := b.enc.Encode(v)
	return b.out, err
}
