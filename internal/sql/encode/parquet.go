package encode

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"
)

const (
	// A row group is in memory until it is complete. It has at most groupRows rows and, of a wide
	// result, about groupValues values.
	groupRows   = 128 << 10
	groupValues = 1 << 20
	// pieceValues is about how many values are made of a batch at once, which take 24 bytes each.
	pieceValues = 64 << 10
	// pageBytes are those of a page of a column, for which the writer makes room at once.
	pageBytes, leastPageBytes = 256 << 10, 1 << 10
)

// parquetWriter writes a Parquet file. arrow-go has a writer, too, which would bring its kernels
// and gRPC into the program: a quarter of its size.
type parquetWriter struct {
	file    *parquet.GenericWriter[any]
	columns []*shredder
	values  [][]parquet.Value // of a row, by leaf
	rows    []parquet.Row     // of a piece
	piece   int               // rows of a piece
}

func newParquet(w io.Writer, schema *arrow.Schema) (Writer, error) {
	p, leaves := &parquetWriter{}, 0
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
	group := rowsOf(groupValues, leaves)
	p.piece = rowsOf(pieceValues, leaves)
	p.file = parquet.NewGenericWriter[any](w, parquet.NewSchema("result", root), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(int64(group)), parquet.PageBufferSize(max(leastPageBytes, min(pageBytes, 8*group))))
	return p, nil
}

// rowsOf returns how many rows of so many leaves have about n values.
func rowsOf(n, leaves int) int { return max(1, min(groupRows, n/max(1, leaves))) }

// Write implements Writer.
func (p *parquetWriter) Write(b arrow.RecordBatch) error {
	for row, n := 0, 0; row < int(b.NumRows()); row++ {
		for i := range p.values {
			p.values[i] = p.values[i][:0]
		}
		for i, c := range p.columns {
			c.put(p.values, b.Column(i), row, 0, 0)
		}
		if n == len(p.rows) {
			p.rows = append(p.rows, nil)
		}
		p.rows[n] = p.rows[n][:0]
		for _, values := range p.values {
			p.rows[n] = append(p.rows[n], values...)
		}
		if n++; n == p.piece || row == int(b.NumRows())-1 {
			if _, err := p.file.WriteRows(p.rows[:n]); err != nil {
				return err
			}
			n = 0
		}
	}
	return nil
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
