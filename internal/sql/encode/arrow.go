package encode

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// arrowWriter writes an Arrow IPC stream. A result without rows has its schema.
type arrowWriter struct{ *ipc.Writer }

func newArrow(w io.Writer, schema *arrow.Schema) (Writer, error) {
	return arrowWriter{ipc.NewWriter(w, ipc.WithSchema(schema))}, nil
}

// End implements Writer.
func (a arrowWriter) End([]string) error { return a.Close() }
