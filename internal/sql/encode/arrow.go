package encode

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// arrowWriter writes an Arrow IPC stream.
type arrowWriter struct {
	w   io.Writer
	ipc *ipc.Writer
}

// Begin implements Writer. A result without rows has its schema.
func (a *arrowWriter) Begin(schema *arrow.Schema, _ []Column) error {
	a.ipc = ipc.NewWriter(a.w, ipc.WithSchema(schema))
	return nil
}

// Write implements Writer.
func (a *arrowWriter) Write(b arrow.RecordBatch) error { return a.ipc.Write(b) }

// End implements Writer.
func (a *arrowWriter) End([]string) error { return a.ipc.Close() }
