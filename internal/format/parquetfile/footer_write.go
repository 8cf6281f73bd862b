package parquetfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// longList is the size in the first byte of a list whose length follows.
const longList = 15

// appendRowGroups appends the row groups of a footer in Thrift's compact protocol, as a list: the
// bytes that parquet-go's encoder writes, which finds the fields by reflection. A small segment has
// more than fifty columns. The first chunks may be those of a prefix.
func appendRowGroups(b []byte, groups []format.RowGroup, prefix *Prefix) []byte {
	b = appendList(b, typeStruct, len(groups))
	for i := range groups {
		g := &groups[i]
		n := len(g.Columns)
		if prefix != nil {
			n += prefix.chunks
		}
		b = appendList(append(b, 1<<4|typeList), typeStruct, n)
		if prefix != nil {
			b = append(b, prefix.columns...)
		}
		for i := range g.Columns {
			b = appendChunk(b, &g.Columns[i].MetaData)
		}
		b = appendLong(b, 1, g.TotalByteSize)
		b = appendLong(b, 1, g.NumRows)
		last := 3
		if g.FileOffset != 0 {
			b, last = appendLong(b, 5-last, g.FileOffset), 5
		}
		if g.TotalCompressedSize != 0 {
			b, last = appendLong(b, 6-last, g.TotalCompressedSize), 6
		}
		b = append(b, byte((7-last)<<4|typeShort))
		b = append(appendInt(b, int32(g.Ordinal)), stop)
	}
	return b
}

func appendChunk(b []byte, m *format.ColumnMetaData) []byte {
	// Fields 2 and 3 of a column chunk: the offset of its metadata, which is none, and these.
	b = append(b, 2<<4|typeLong, 0, 1<<4|typeStruct)
	b = appendInt(append(b, nextInt), int32(m.Type))
	b = appendList(append(b, 1<<4|typeList), typeInt, len(m.Encoding))
	for _, e := range m.Encoding {
		b = appendInt(b, int32(e))
	}
	b = appendList(append(b, 1<<4|typeList), typeBinary, len(m.PathInSchema))
	for _, p := range m.PathInSchema {
		b = appendBinary(b, p)
	}
	b = appendInt(append(b, nextInt), int32(m.Codec))
	b = appendLong(b, 1, m.NumValues)
	b = appendLong(b, 1, m.TotalUncompressedSize)
	b = appendLong(b, 1, m.TotalCompressedSize)
	b = appendLong(b, 2, m.DataPageOffset)
	last := 9
	if m.DictionaryPageOffset != 0 {
		b, last = appendLong(b, 2, m.DictionaryPageOffset), 11
	}
	b = append(b, byte((12-last)<<4|typeStruct))
	b = append(b, 3<<4|typeLong, 0) // of the statistics: no value is null
	last = 3
	if m.Statistics.MaxValue != nil {
		b, last = appendBinary(append(b, byte((5-last)<<4|typeBinary)), m.Statistics.MaxValue), 5
	}
	if m.Statistics.MinValue != nil {
		b = appendBinary(append(b, byte((6-last)<<4|typeBinary)), m.Statistics.MinValue)
	}
	return append(b, stop, stop, stop)
}

// appendLong appends a field of 64 bits, which is some fields after the one before it.
func appendLong(b []byte, after int, v int64) []byte {
	return binary.AppendVarint(append(b, byte(after<<4|typeLong)), v)
}

func appendBinary[T string | []byte](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// appendList appends the head of a list of n elements.
func appendList(b []byte, element byte, n int) []byte {
	if n < longList {
		return append(b, byte(n)<<4|element)
	}
	return binary.AppendUvarint(append(b, longList<<4|element), uint64(n))
}

// footerHead is the fields of format.FileMetaData before the row groups.
type footerHead struct {
	Version int32                              `thrift:"1,required"`
	Schema  thrift.Slice[format.SchemaElement] `thrift:"2,required"`
	NumRows int64                              `thrift:"3,required"`
}

// byType is an element of the list of column orders: that of the column's type.
const byType = "\x1c\x00\x00"

// marshalFooter encodes a footer, whose beginning may be that of a prefix. The bytes are valid until
// the next call of marshal.
func (b *thriftBuffer) marshalFooter(m *format.FileMetaData, prefix *Prefix) ([]byte, error) {
	var head []byte
	if prefix != nil {
		head = append(b.out[:0], prefix.head...)
	} else {
		whole, err := b.marshal(&footerHead{m.Version, m.Schema, m.NumRows})
		if err != nil {
			return nil, err
		}
		head = whole[:len(whole)-1]
	}
	b.head = len(head)
	out := appendRowGroups(append(head, 1<<4|typeList), m.RowGroups, prefix)
	out = appendList(append(out, 1<<4|typeList), typeStruct, len(m.KeyValueMetadata))
	for _, kv := range m.KeyValueMetadata {
		out = appendBinary(append(out, 1<<4|typeBinary), kv.Key)
		out = append(appendBinary(append(out, 1<<4|typeBinary), kv.Value), stop)
	}
	out = appendBinary(append(out, 1<<4|typeBinary), m.CreatedBy)
	if len(m.ColumnOrders) > 0 {
		out = appendList(append(out, 1<<4|typeList), typeStruct, len(m.ColumnOrders))
		for range m.ColumnOrders {
			out = append(out, byType...)
		}
	}
	b.out = append(out, stop)
	return b.out, nil
}

// Prefix is the beginning of a file of one row group, up to one of its column chunks, and what the
// footer says of it. Files with the same schema and number of rows, whose first chunks have the
// same values, have the same prefix.
type Prefix struct {
	pages       []byte // from the first byte of the file
	head        []byte // of the footer, before the row groups
	columns     []byte // of the footer: the chunks
	chunks      int
	orders      []format.ColumnOrder // of all columns of the schema
	raw, stored int64                // bytes of the chunks, uncompressed and in the file
}

// Bytes is the memory of the prefix.
func (p *Prefix) Bytes() int64 {
	const own, perOrder = 160, 16
	return own + int64(cap(p.pages)+cap(p.head)+cap(p.columns)+perOrder*cap(p.orders))
}

// Prefix returns a copy of the beginning of the file that End has just completed, with its first
// chunks. The file has one row group and more chunks than these.
func (w *Writer) Prefix(file []byte, chunks int) *Prefix {
	all := w.meta.RowGroups[0].Columns
	p := &Prefix{
		pages: bytes.Clone(file[:offset(&all[chunks].MetaData)]), head: bytes.Clone(w.thr.out[:w.thr.head]), chunks: chunks, orders: w.meta.ColumnOrders,
	}
	for i := range all[:chunks] {
		m := &all[i].MetaData
		p.columns = appendChunk(p.columns, m)
		p.raw, p.stored = p.raw+m.TotalUncompressedSize, p.stored+m.TotalCompressedSize
	}
	p.columns = bytes.Clone(p.columns)
	return p
}

// Resume starts a file with a prefix instead of Begin and the first calls of Add. The row group has
// as many rows as that of the prefix; EndGroup returns the spans of the chunks that were added.
func (w *Writer) Resume(out io.Writer, p *Prefix, createdBy string, plain int) error {
	w.start(out, createdBy, plain)
	w.prefix = p
	w.group.TotalByteSize, w.group.TotalCompressedSize = p.raw, p.stored
	if err := w.write(p.pages); err != nil {
		return fmt.Errorf("write prefix: %w", err)
	}
	return nil
}

// offset is the place of a chunk in its file.
func offset(m *format.ColumnMetaData) int64 {
	return cmp.Or(m.DictionaryPageOffset, m.DataPageOffset) // a column without a dictionary begins with its data
}
