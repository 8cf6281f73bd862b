package segment

import (
	"slices"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const createdBy = "promlake segment version 1"

// shape says which columns a file has.
type shape struct {
	labels    []string // names with a column of their own, sorted
	mapNames  []string // names in the labels MAP, sorted
	st        bool
	hist      bool
	exemplars bool
}

var (
	stringType    = format.LogicalType{Value: &format.StringType{}}
	timestampType = format.LogicalType{Value: &format.TimestampType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MilliSeconds{}}}}
	uint64Type    = format.LogicalType{Value: &format.IntType{BitWidth: 64, IsSigned: false}}
)

// schema returns the flattened schema tree of a file, depth first.
func (s *shape) schema() []format.SchemaElement {
	els := []format.SchemaElement{{Name: "promlake_segment"}}
	top := 0
	add := func(e ...format.SchemaElement) {
		top++
		els = append(els, e...)
	}
	add(leaf(ColMetric, format.ByteArray, stringType, deprecated.UTF8))
	add(leaf(ColSeriesID, format.Int64, uint64Type, deprecated.Uint64))
	for _, n := range s.labels {
		add(leaf(LabelPrefix+n, format.ByteArray, stringType, deprecated.UTF8))
	}
	if len(s.mapNames) > 0 {
		add(mapOf(ColLabels)...)
	}
	ts := leaf("element", format.Int64, timestampType, deprecated.TimestampMillis)
	double := bare("element", format.Double)
	add(listOf(ColTS, ts)...)
	add(listOf(ColValue, double)...)
	if s.st {
		add(listOf(ColST, ts)...)
	}
	if s.hist {
		add(listOf(ColHistTS, ts)...)
		add(listOf(ColHistCount, double)...)
		add(listOf(ColHistSum, double)...)
		add(listOf(ColHist, bare("element", format.ByteArray))...)
	}
	if s.exemplars {
		add(listOf(ColExTS, ts)...)
		add(listOf(ColExValue, double)...)
		add(listOf(ColExLabels, leaf("element", format.ByteArray, stringType, deprecated.UTF8))...)
	}
	els[0].NumChildren = thrift.New(int32(top))
	return els
}

func bare(name string, t format.Type) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(t), RepetitionType: thrift.New(format.Required)}
}

func leaf(name string, t format.Type, lt format.LogicalType, ct deprecated.ConvertedType) format.SchemaElement {
	e := bare(name, t)
	e.LogicalType, e.ConvertedType = lt, thrift.New(ct)
	return e
}

func group(name string, rep format.FieldRepetitionType, children int32) format.SchemaElement {
	return format.SchemaElement{Name: name, RepetitionType: thrift.New(rep), NumChildren: thrift.New(children)}
}

// listOf is the standard three-level LIST of required elements in a required group (LogicalTypes.md, "Lists").
func listOf(name string, element format.SchemaElement) []format.SchemaElement {
	g := group(name, format.Required, 1)
	g.LogicalType, g.ConvertedType = format.LogicalType{Value: &format.ListType{}}, thrift.New(deprecated.List)
	return []format.SchemaElement{g, group("list", format.Repeated, 1), element}
}

// mapOf is the standard MAP of required strings to required strings (LogicalTypes.md, "Maps").
func mapOf(name string) []format.SchemaElement {
	g := group(name, format.Required, 1)
	g.LogicalType, g.ConvertedType = format.LogicalType{Value: &format.MapType{}}, thrift.New(deprecated.Map)
	return []format.SchemaElement{
		g, group("key_value", format.Repeated, 2),
		leaf("key", format.ByteArray, stringType, deprecated.UTF8),
		leaf("value", format.ByteArray, stringType, deprecated.UTF8),
	}
}

// split sorts label names and divides them into those with a column and those in the MAP.
func split(names []string) (columns, inMap []string) {
	slices.Sort(names)
	for _, n := range names {
		if HasColumn(n) && len(columns) < MaxLabelColumns {
			columns = append(columns, n)
		} else {
			inMap = append(inMap, n)
		}
	}
	return columns, inMap
}
