package encode

import (
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
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

// groupRows is the number of rows from which a row group ends: it is in memory until then.
const groupRows = 128 << 10

// parquetWriter writes a Parquet file.
type parquetWriter struct {
	w    io.Writer
	file *pqarrow.FileWriter
	rows int64 // of the row group
}

// Begin implements Writer.
func (p *parquetWriter) Begin(schema *arrow.Schema, _ []Column) (err error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(true), parquet.WithMaxRowGroupLength(groupRows))
	p.file, err = pqarrow.NewFileWriter(schema, unclosed{p.w}, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	return err
}

// Write implements Writer.
func (p *parquetWriter) Write(b arrow.RecordBatch) error {
	if p.rows += b.NumRows(); p.rows > groupRows {
		p.rows = b.NumRows()
		p.file.NewBufferedRowGroup()
	}
	return p.file.WriteBuffered(b)
}

// End implements Writer.
func (p *parquetWriter) End([]string) error { return p.file.Close() }

// unclosed hides that a writer can be closed, which belongs to its owner.
type unclosed struct{ io.Writer }
