package encode

import (
	"encoding/csv"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// csvWriter writes RFC 4180 with a header. NULL is an empty field. Nested values are JSON.
type csvWriter struct {
	w   io.Writer
	csv *csv.Writer
	row []string
}

// Begin implements Writer.
func (c *csvWriter) Begin(_ *arrow.Schema, columns []Column) error {
	c.csv, c.row = csv.NewWriter(c.w), make([]string, len(columns))
	for i, column := range columns {
		c.row[i] = column.Name
	}
	return c.csv.Write(c.row)
}

// Write implements Writer.
func (c *csvWriter) Write(b arrow.RecordBatch) error {
	columns := make([]appender, len(c.row))
	for i := range columns {
		columns[i] = appenderOf(b.Column(i), nil)
	}
	var buf []byte
	for row := range int(b.NumRows()) {
		for i, f := range columns {
			if text, ok := b.Column(i).(*array.String); ok && !text.IsNull(row) {
				c.row[i] = text.Value(row)
				continue
			}
			buf = f(buf[:0], row)
			c.row[i] = plain(buf)
		}
		if err := c.csv.Write(c.row); err != nil {
			return err
		}
	}
	c.csv.Flush()
	return c.csv.Error()
}

// plain returns a JSON value as a field: strings without their quotes, null as nothing.
func plain(b []byte) string {
	switch {
	case string(b) == "null":
		return ""
	case len(b) > 0 && b[0] == '"':
		return unquoted(b)
	default:
		return string(b)
	}
}

// End implements Writer.
func (c *csvWriter) End([]string) error {
	c.csv.Flush()
	return c.csv.Error()
}
