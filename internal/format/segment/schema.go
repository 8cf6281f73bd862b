package segment

import (
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

const createdBy = "promlake segment version 2"

// shape is the set of optional sample columns of a file.
type shape struct{ st, hist, exemplars bool }

// schema returns the schema of a file with the label columns of c.
func (s shape) schema(c *SeriesColumns) []format.SchemaElement {
	els := parquetfile.NewSchema("promlake_segment")
	c.Schema(els)
	ts := parquetfile.Timestamp("element")
	double := parquetfile.Bare("element", format.Double)
	list := func(name string, element format.SchemaElement) { els.Add(parquetfile.List(name, element)...) }
	list(ColTS, ts)
	list(ColValue, double)
	if s.st {
		list(ColST, ts)
	}
	if s.hist {
		list(ColHistTS, ts)
		list(ColHistCount, double)
		list(ColHistSum, double)
		list(ColHist, parquetfile.Bare("element", format.ByteArray))
	}
	if s.exemplars {
		list(ColExTS, ts)
		list(ColExValue, double)
		list(ColExLabels, parquetfile.String("element"))
	}
	return els.Elements()
}
