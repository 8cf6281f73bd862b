// Package parquetfile writes and reads Parquet files page by page. parquet-go provides the
// structures of the footer, their encoding and the value encodings. Its writers take rows or whole
// columns of values; this package builds pages itself, because segments and blocks are cheaper to
// write as runs of known dictionary indexes, or as pages whose encoding was selected by trial.
package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go/format"
)

// Magic is the beginning and the end of every Parquet file.
const Magic = "PAR1"

// MinCompress is the number of page bytes below which a column chunk may be stored uncompressed,
// because a zstd frame hardly makes it smaller, and its entropy tables cost more time than all else
// of the chunk. It is for files of one row group. In other files
// all chunks are compressed, because some readers use the codec of a column's first chunk for all.
const MinCompress = 256

// ErrFormat reports bytes that are not a Parquet file.
var ErrFormat = errors.New("not a Parquet file")

// Chunk is a column chunk to be written: a dictionary page, if DictLen > 0, and at least one data
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
	Literals bool   // compress it as Literals does, if its chunk is compressed
	Words    bool   // the same as Words does
}

// Span is the position of a column chunk in its file, in bytes.
type Span struct{ Offset, Length int64 }

// Scratch is buffer space that the columns of a writer share. A chunk built with it aliases it, so
// add each chunk to a Writer before building the next.
type Scratch struct {
	Dict, Data []byte
	pages      [1]Page
	pending    []uint32
}

// page returns the scratch data as the only page of a chunk.
func (s *Scratch) page(e format.Encoding, values int) []Page {
	s.pages[0] = Page{Encoding: e, Data: s.Data, Values: values}
	return s.pages[:]
}
