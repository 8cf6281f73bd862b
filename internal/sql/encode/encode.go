// Package encode writes the result of a SQL statement: as JSON, CSV, an Arrow IPC stream or
// Parquet, batch by batch.
package encode

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
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

// Size bounds the bytes that a batch takes outside of DuckDB's memory while it is written in a
// format. Parquet makes all elements of a row's lists and maps at once, in lists that grow, and
// copies texts to a page, which it then compresses.
func Size(b arrow.RecordBatch, f Format) (bytes int64) {
	element, copies := int64(32), int64(1)
	if f == Parquet {
		element, copies = 128, 3
	}
	var count func(d arrow.ArrayData, inside bool)
	count = func(d arrow.ArrayData, inside bool) {
		if len(d.Children()) == 0 && inside {
			bytes += int64(d.Len()) * element
		}
		for _, part := range d.Buffers() {
			if part != nil {
				bytes += int64(part.Len()) * copies
			}
		}
		switch d.DataType().ID() {
		case arrow.LIST, arrow.FIXED_SIZE_LIST, arrow.MAP:
			inside = true
		}
		for _, c := range d.Children() {
			count(c, inside)
		}
	}
	for _, c := range b.Columns() {
		count(c.Data(), false)
	}
	return bytes
}

// New returns a writer of a format, and writes what comes before the rows. Arrow and Parquet have
// the schema, JSON and CSV the columns.
func New(f Format, w io.Writer, schema *arrow.Schema, columns []Column) (Writer, error) {
	switch f {
	case JSON:
		return newJSON(w, columns)
	case CSV:
		return newCSV(w, columns)
	case Arrow:
		return newArrow(w, schema)
	case Parquet:
		return newParquet(w, schema)
	default:
		return nil, fmt.Errorf("unknown format %q of a result", f)
	}
}

// arrowWriter writes an Arrow IPC stream. A result without rows has its schema.
type arrowWriter struct{ *ipc.Writer }

func newArrow(w io.Writer, schema *arrow.Schema) (Writer, error) {
	return arrowWriter{ipc.NewWriter(w, ipc.WithSchema(schema))}, nil
}

// End implements Writer.
func (a arrowWriter) End([]string) error { return a.Close() }
