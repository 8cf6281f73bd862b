package encode

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
)

// jsonWriter writes the envelope of Prometheus' API:
//
//	{"status":"success","data":{"columns":[{"name":…,"type":…}],"rows":[[…],…]},"warnings":[…]}
type jsonWriter struct {
	w    io.Writer
	any  bool // rows were written
	buf  []byte
	sink *sink
}

func newJSON(w io.Writer, columns []Column) (Writer, error) {
	head, err := json.Marshal(columns)
	if err != nil {
		return nil, fmt.Errorf("write columns: %w", err)
	}
	_, err = fmt.Fprintf(w, `{"status":"success","data":{"columns":%s,"rows":[`, head)
	return &jsonWriter{w: w, sink: &sink{w: w}}, err
}

// Write implements Writer.
func (j *jsonWriter) Write(b arrow.RecordBatch) error {
	columns := appendersOf(b, j.sink)
	j.buf = j.buf[:0]
	for row := range int(b.NumRows()) {
		if j.any {
			j.buf = append(j.buf, ',')
		}
		j.any = true
		for i, f := range columns {
			j.buf = append(j.buf, "[,"[min(i, 1)])
			j.buf = j.sink.full(f(j.buf, row))
		}
		if j.buf = append(j.buf, ']'); j.sink.err != nil {
			return j.sink.err
		}
	}
	_, err := j.w.Write(j.buf)
	return err
}

// End implements Writer.
func (j *jsonWriter) End(warnings []string) error {
	tail := []byte("]}")
	if len(warnings) > 0 {
		text, err := json.Marshal(warnings)
		if err != nil {
			return fmt.Errorf("write warnings: %w", err)
		}
		tail = append(append(tail, `,"warnings":`...), text...)
	}
	_, err := j.w.Write(append(tail, '}'))
	return err
}
