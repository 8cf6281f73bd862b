package encode

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"
)

// groupRows is the number of rows of a row group: it is in memory until it is complete.
const groupRows = 128 << 10

// parquetWriter writes a Parquet file. arrow-go has a writer, too, which would bring its kernels
// and gRPC into the program: a quarter of its size.
type parquetWriter struct {
	w       io.Writer
	file    *parquet.GenericWriter[any]
	columns []*shredder
	values  [][]parquet.Value // of a row, by leaf
	rows    []parquet.Row
}

// Begin implements Writer.
func (p *parquetWriter) Begin(schema *arrow.Schema, _ []Column) error {
	leaves := 0
	root := ordered{Group: parquet.Group{}}
	for _, f := range schema.Fields() {
		name := f.Name
		for i := 1; root.Group[name] != nil; i++ { // a result may have columns of one name
			name = fmt.Sprintf("%s_%d", f.Name, i)
		}
		s := shred(f.Type, &leaves, 0)
		p.columns = append(p.columns, s)
		root.Group[name] = parquet.Optional(s.node)
		root.names = append(root.names, name)
	}
	p.values = make([][]parquet.Value, leaves)
	p.file = parquet.NewGenericWriter[any](p.w, parquet.NewSchema("result", root), parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows))
	return nil
}

// Write implements Writer.
func (p *parquetWriter) Write(b arrow.RecordBatch) error {
	for row := range int(b.NumRows()) {
		for i := range p.values {
			p.values[i] = p.values[i][:0]
		}
		for i, c := range p.columns {
			c.put(p.values, b.Column(i), row, 0, 0)
		}
		if row == len(p.rows) {
			p.rows = append(p.rows, nil)
		}
		p.rows[row] = p.rows[row][:0]
		for _, values := range p.values {
			p.rows[row] = append(p.rows[row], values...)
		}
	}
	_, err := p.file.WriteRows(p.rows[:b.NumRows()])
	return err
}

// End implements Writer.
func (p *parquetWriter) End([]string) error { return p.file.Close() }

// ordered is a group whose fields keep their order.
type ordered struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field {
	byName := map[string]parquet.Field{}
	for _, f := range o.Group.Fields() {
		byName[f.Name()] = f
	}
	out := make([]parquet.Field, len(o.names))
	for i, n := range o.names {
		out[i] = byName[n]
	}
	return out
}
