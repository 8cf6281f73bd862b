package parquetfile

import (
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

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
