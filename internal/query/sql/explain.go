package sql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// explained writes, after DuckDB's plan, a row for each scan: which samples it reads, and how many
// live objects may have them; if the statement ran, also how many rows of buckets were stored.
func (x *execution) explained(schema *arrow.Schema) error {
	if len(schema.Fields()) != 2 {
		return nil
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	put := func(column int, s string) error {
		if f, ok := b.Field(column).(*array.StringBuilder); ok {
			f.Append(s)
			return nil
		}
		return fmt.Errorf("explain a statement: column %d of DuckDB's answer is not text", column)
	}
	for _, s := range x.scans {
		c := s.constraint
		snap := x.snap.Narrow(max(c.MinT, x.mint), min(c.MaxT, x.maxt))
		var bytes int64
		for _, o := range snap.Segments {
			bytes += o.Size
		}
		for _, o := range snap.Blocks {
			bytes += o.Bytes
		}
		text := fmt.Sprintf("%s; of %d segments and %d blocks, %d bytes", s, len(snap.Segments), len(snap.Blocks), bytes)
		if rows := x.counts[s.key]; len(rows) > 0 {
			var stored, computed int64
			for _, n := range rows {
				a, b := n()
				stored, computed = stored+a, computed+b
			}
			text += fmt.Sprintf("; %d rows of rollups, %d computed from samples", stored, computed)
		}
		if err := put(0, "scan"); err != nil {
			return err
		}
		if err := put(1, text); err != nil {
			return err
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return x.enc.Write(batch)
}
