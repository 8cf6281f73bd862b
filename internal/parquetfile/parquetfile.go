// Package parquetfile lays Parquet files page by page. parquet-go supplies the structures of the
// footer, their encoding and the value encodings; the pages are laid here, because its writers take
// rows or whole columns of values, and what segments and blocks store is cheaper as runs of
// dictionary indexes that are known beforehand, or as pages whose encodings were tried out.
package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go/format"
)

// Magic begins and ends every Parquet file.
const Magic = "PAR1"

// MinCompress is the number of page bytes in a column chunk below which it may be stored
// uncompressed: a zstd frame would not pay. It suits files of one row group; in others all chunks
// are compressed, for some readers take a column's codec from its first chunk.
const MinCompress = 64

// ErrFormat reports bytes that are not a Parquet file.
var ErrFormat = errors.New("not a Parquet file")

// Chunk is one column chunk to be written: a dictionary page, if DictLen > 0, and at least one data
// page.
type Chunk struct {
	Path     []string
	Type     format.Type
	Dict     []byte // PLAIN values, uncompressed
	DictLen  int
	Pages    []Page
	Min, Max []byte // statistics; nil = none
}

// Page is one data page.
type Page struct {
	Encoding format.Encoding
	Data     []byte // levels and values, uncompressed
	Values   int    // including nulls and empty lists
}

// Span is where a column chunk lies in its file, in bytes.
type Span struct{ Offset, Length int64 }

// Scratch is buffer space that the columns of one writer share: chunks that are built with it alias
// it, so each is to be added to a Writer before the next is built.
type Scratch struct {
	Dict, Data []byte
	pages      [1]Page
	pending    []uint32
}

// page makes the scratch bytes the only page of a chunk.
func (s *Scratch) page(e format.Encoding, values int) []Page {
	s.pages[0] = Page{Encoding: e, Data: s.Data, Values: values}
	return s.pages[:]
}
