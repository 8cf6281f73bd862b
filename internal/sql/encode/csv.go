package encode

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// csvWriter writes RFC 4180 with a header. NULL is an empty field. Nested values are JSON. Values
// are written in pieces: encoding/csv needs all of a field, which may be long.
type csvWriter struct {
	out  *bufio.Writer
	cols int

	inside *doubled // the quotes of a field
	sink   *sink    // of a value that is too long to be made whole
	buf    []byte
}

func newCSV(w io.Writer, columns []Column) (Writer, error) {
	c := &csvWriter{out: bufio.NewWriter(w), cols: len(columns)}
	c.inside = &doubled{out: c.out}
	c.sink = &sink{w: c.inside}
	for i, column := range columns {
		c.text(column.Name)
		c.end(i)
	}
	return c, c.out.Flush()
}

// end writes what follows the field of a column. The buffer keeps errors for Flush.
func (c *csvWriter) end(i int) {
	if i < c.cols-1 {
		_ = c.out.WriteByte(',')
	} else {
		_ = c.out.WriteByte('\n')
	}
}

// text writes a field, in quotes if it needs them.
func (c *csvWriter) text(s string) {
	if s == "" || !strings.ContainsAny(s, ",\"\r\n") && s[0] != ' ' && s[0] != '\t' && s != `\.` {
		_, _ = c.out.WriteString(s)
		return
	}
	c.inside.writeString(s)
	c.inside.close()
}

// Write implements Writer.
func (c *csvWriter) Write(b arrow.RecordBatch) error {
	columns := appendersOf(b, c.sink)
	for row := range int(b.NumRows()) {
		for i, f := range columns {
			text, isText := b.Column(i).(*array.String)
			switch {
			case b.Column(i).IsNull(row):
			case isText:
				c.text(text.Value(row))
			default:
				if c.buf = f(c.buf[:0], row); c.inside.open { // the sink has its beginning
					_, _ = c.inside.Write(c.buf)
					c.inside.close()
				} else {
					c.text(plain(c.buf))
				}
			}
			c.end(i)
		}
		if c.sink.err != nil {
			return c.sink.err
		}
	}
	return c.out.Flush()
}

// plain returns a JSON value as a field: strings without their quotes.
func plain(b []byte) string {
	var s string
	if len(b) > 0 && b[0] == '"' && json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}

// End implements Writer.
func (c *csvWriter) End([]string) error { return nil }

// doubled writes texts with doubled quotes, after a quote. The buffer keeps errors for Flush.
type doubled struct {
	out  *bufio.Writer
	open bool // the quote is written
}

// Write implements io.Writer: it returns the buffer's error.
func (d *doubled) Write(p []byte) (int, error) {
	d.writeString(unsafe.String(unsafe.SliceData(p), len(p)))
	return d.out.Write(nil)
}

func (d *doubled) writeString(s string) {
	if !d.open {
		d.open = true
		_ = d.out.WriteByte('"')
	}
	for {
		part, rest, more := strings.Cut(s, `"`)
		_, _ = d.out.WriteString(part)
		if !more {
			return
		}
		_, _ = d.out.WriteString(`""`)
		s = rest
	}
}

// close writes the quote at the end.
func (d *doubled) close() {
	d.open = false
	_ = d.out.WriteByte('"')
}
