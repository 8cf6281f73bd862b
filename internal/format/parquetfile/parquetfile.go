// Package parquetfile writes and reads Parquet files page by page. parquet-go provides the
// structures of the footer, their encoding and the value encodings. Its writers take rows or whole
// columns of values; this package builds pages itself, because segments and blocks are cheaper to
// write as runs of known dictionary indexes, or as pages whose encoding was selected by trial.
package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
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

var (
	stringType    = format.LogicalType{Value: &format.StringType{}}
	timestampType = format.LogicalType{Value: &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MilliSeconds{}}}}
	uint64Type    = format.LogicalType{Value: &format.IntType{BitWidth: 64, IsSigned: false}}
)

// Schema builds the schema tree of a file, flattened depth first, from its top-level columns, all
// REQUIRED.
type Schema struct {
	elements []format.SchemaElement
	top      int32
}

// NewSchema starts a schema whose root has the given name.
func NewSchema(name string) *Schema {
	return &Schema{elements: []format.SchemaElement{{Name: name}}}
}

// Add appends a top-level column: one element for a flat column, or the result of List or Map.
func (s *Schema) Add(column ...format.SchemaElement) {
	s.top++
	s.elements = append(s.elements, column...)
}

// Elements returns the flattened tree.
func (s *Schema) Elements() []format.SchemaElement {
	s.elements[0].NumChildren = thrift.New(s.top)
	return s.elements
}

// String returns a column of UTF-8 text.
func String(name string) format.SchemaElement {
	return leaf(name, format.ByteArray, stringType, deprecated.UTF8)
}

// Uint64 returns a column of unsigned integers.
func Uint64(name string) format.SchemaElement {
	return leaf(name, format.Int64, uint64Type, deprecated.Uint64)
}

// Timestamp returns a column of times in ms, UTC.
func Timestamp(name string) format.SchemaElement {
	return leaf(name, format.Int64, timestampType, deprecated.TimestampMillis)
}

// Bare returns a column of a physical type without a logical one.
func Bare(name string, t format.Type) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(t), RepetitionType: thrift.New(format.Required)}
}

func leaf(name string, t format.Type, lt format.LogicalType, ct deprecated.ConvertedType) format.SchemaElement {
	e := Bare(name, t)
	e.LogicalType, e.ConvertedType = lt, thrift.New(ct)
	return e
}

func group(name string, rep format.FieldRepetitionType, children int32) format.SchemaElement {
	return format.SchemaElement{Name: name, RepetitionType: thrift.New(rep), NumChildren: thrift.New(children)}
}

// List returns the standard three-level LIST of required elements in a required group
// (LogicalTypes.md, "Lists"). The element must be named "element".
func List(name string, element format.SchemaElement) []format.SchemaElement {
	g := group(name, format.Required, 1)
	g.LogicalType, g.ConvertedType = format.LogicalType{Value: &format.ListType{}}, thrift.New(deprecated.List)
	return []format.SchemaElement{g, group("list", format.Repeated, 1), element}
}

// Map returns the standard MAP of required strings to required strings (LogicalTypes.md, "Maps").
func Map(name string) []format.SchemaElement {
	g := group(name, format.Required, 1)
	g.LogicalType, g.ConvertedType = format.LogicalType{Value: &format.MapType{}}, thrift.New(deprecated.Map)
	return []format.SchemaElement{g, group("key_value", format.Repeated, 2), String("key"), String("value")}
}

// MapPath returns the path of a MAP's keys (part "key") or values ("value").
func MapPath(col, part string) []string { return []string{col, "key_value", part} }
