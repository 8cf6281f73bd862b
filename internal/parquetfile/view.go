package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Footer describes a file that was put together from column chunks of another one.
type Footer struct {
	Schema    []format.SchemaElement // the root, whose number of children is set here, and flat REQUIRED columns
	Codec     format.CompressionCodec
	KeyValues []format.KeyValue
	Groups    []FooterGroup
}

// FooterGroup is a row group of a Footer.
type FooterGroup struct {
	Rows   int64
	Chunks []FooterChunk // by column
}

// FooterChunk is a column chunk of a Footer.
type FooterChunk struct {
	Span
	Pages    PageCount
	Min, Max []byte // statistics, which must be exact; nil = none
}

// Append appends the footer with all that follows it: it ends a file whose chunks are written.
func (f *Footer) Append(dst []byte) ([]byte, error) {
	meta := format.FileMetaData{Version: 2, KeyValueMetadata: f.KeyValues, Schema: slices.Clone(f.Schema)}
	meta.Schema[0].NumChildren = thrift.New(int32(len(f.Schema) - 1))
	for range f.Schema[1:] {
		meta.ColumnOrders = append(meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	for i, g := range f.Groups {
		group := format.RowGroup{NumRows: g.Rows, Ordinal: int16(i)}
		for j, c := range g.Chunks {
			group.Columns = append(group.Columns, format.ColumnChunk{MetaData: f.chunk(j, c)})
			group.TotalByteSize += c.Pages.Plain
			group.TotalCompressedSize += c.Length
		}
		if len(g.Chunks) > 0 {
			group.FileOffset = g.Chunks[0].Offset
		}
		meta.RowGroups = append(meta.RowGroups, group)
		meta.NumRows += g.Rows
	}
	var thr thriftBuffer
	b, err := thr.marshal(&meta)
	if err != nil {
		return nil, fmt.Errorf("encode footer: %w", err)
	}
	dst = append(dst, b...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, Magic...), nil
}

func (f *Footer) chunk(column int, c FooterChunk) format.ColumnMetaData {
	e := f.Schema[1+column]
	m := format.ColumnMetaData{
		Type: e.Type.V, Encoding: c.Pages.Encodings, PathInSchema: []string{e.Name}, Codec: f.Codec, NumValues: c.Pages.Values,
		TotalUncompressedSize: c.Pages.Plain, TotalCompressedSize: c.Length, DataPageOffset: c.Offset + c.Pages.Dict,
		Statistics: format.Statistics{MinValue: c.Min, MaxValue: c.Max},
	}
	if c.Pages.Dict > 0 {
		m.DictionaryPageOffset = c.Offset
	}
	return m
}

// PageCount is what the page headers of a column chunk add up to.
type PageCount struct {
	Dict      int64 // bytes of the dictionary page with its header; 0 = there is none
	Plain     int64 // bytes of all pages before compression, with their headers
	Values    int64 // in data pages
	Encodings []format.Encoding
}

// maxPageHead is the size up to which page headers are read, in bytes. Those that Writer writes have at most some forty.
const maxPageHead = 256

// ReadPages reads the page headers of a column chunk. Errors: ErrFormat if the chunk is not a sequence of pages that ends with it, and
// those of r.
func ReadPages(r io.ReaderAt, chunk Span) (PageCount, error) {
	out := PageCount{Encodings: []format.Encoding{format.Plain, format.RLE}}
	var h pageHead
	var buf [maxPageHead]byte
	for at, end := chunk.Offset, chunk.Offset+chunk.Length; at < end; {
		b := buf[:min(maxPageHead, end-at)]
		if _, err := r.ReadAt(b, at); err != nil {
			return out, fmt.Errorf("read page header: %w", err)
		}
		n, err := h.read(b)
		if err != nil {
			return out, fmt.Errorf("%w: decode page header: %w", ErrFormat, err)
		}
		size := int64(n) + h.compressed
		if h.compressed < 0 || h.plain < 0 || h.values < 0 || size > end-at {
			return out, fmt.Errorf("%w: page of %d bytes and %d values in a chunk that has %d bytes left", ErrFormat, h.compressed, h.values, end-at)
		}
		switch first := at == chunk.Offset; {
		case h.typ == int64(format.DataPage):
			out.Values += h.values
		case h.typ == int64(format.DictionaryPage) && first:
			out.Dict = size
		default:
			return out, fmt.Errorf("%w: page of type %d where data should be", ErrFormat, h.typ)
		}
		if e := format.Encoding(h.encoding); !slices.Contains(out.Encodings, e) {
			out.Encodings = append(out.Encodings, e)
		}
		out.Plain += int64(n) + h.plain
		at += size
	}
	return out, nil
}
