package parquetfile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

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
