// Package encode writes the result of a SQL statement: as JSON, CSV, an Arrow IPC stream or
// Parquet, batch by batch.
package encode

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// Format is the format of a result.
type Format string

// The formats.
const (
	JSON    Format = "json"
	CSV     Format = "csv"
	Arrow   Format = "arrow"
	Parquet Format = "parquet"
)

// Column is a column of a result.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as SQL spells it
}

// Writer writes one result. It is used by one goroutine.
type Writer interface {
	// Begin writes what comes before the rows.
	Begin(schema *arrow.Schema, columns []Column) error
	// Write writes rows. It keeps nothing of the batch.
	Write(batch arrow.RecordBatch) error
	// End writes what comes after the rows. Only JSON has room for warnings.
	End(warnings []string) error
}

// Leaves returns the number of values of a row, those of lists aside.
func Leaves(fields []arrow.Field) (n int) {
	for _, f := range fields {
		if t, ok := f.Type.(arrow.NestedType); ok {
			n += Leaves(t.Fields())
		} else {
			n++
		}
	}
	return n
}

// Elements returns the number of values of a batch that are elements of lists and maps.
func Elements(b arrow.RecordBatch) (n int64) {
	var count func(d arrow.ArrayData, inside bool)
	count = func(d arrow.ArrayData, inside bool) {
		if len(d.Children()) == 0 && inside {
			n += int64(d.Len())
		}
		id := d.DataType().ID()
		for _, c := range d.Children() {
			count(c, inside || id == arrow.LIST || id == arrow.MAP)
		}
	}
	for _, c := range b.Columns() {
		count(c.Data(), false)
	}
	return n
}

// ElementBytes bounds what an element of a list or map takes while it is written in a format: all
// of a row are made at once for Parquet, in lists that grow, and are copied for its row.
func ElementBytes(f Format) int64 {
	if f == Parquet {
		return 128
	}
	return 32
}

// New returns a writer of a format.
func New(f Format, w io.Writer) (Writer, error) {
	switch f {
	case JSON:
		return &jsonWriter{w: w}, nil
	case CSV:
		return &csvWriter{w: w}, nil
	case Arrow:
		return &arrowWriter{w: w}, nil
	case Parquet:
		return &parquetWriter{w: w}, nil
	default:
		return nil, fmt.Errorf("unknown format %q of a result", f)
	}
}
