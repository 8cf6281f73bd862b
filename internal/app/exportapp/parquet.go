package exportapp

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/promlake/promlake/internal/sql/encode"
)

// bucketType and parquetSchema are the columns: those of the SQL table samples, and one for native
// histograms. A row has a value or a histogram.
var (
	bucketType = arrow.StructOf(
		arrow.Field{Name: "lower", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: "upper", Type: arrow.PrimitiveTypes.Float64},
		arrow.Field{Name: "count", Type: arrow.PrimitiveTypes.Float64},
	)
	parquetSchema = arrow.NewSchema([]arrow.Field{
		{Name: "metric", Type: arrow.BinaryTypes.String},
		{Name: "labels", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String)},
		{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
		{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "histogram", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "count", Type: arrow.PrimitiveTypes.Float64},
			arrow.Field{Name: "sum", Type: arrow.PrimitiveTypes.Float64},
			arrow.Field{Name: "schema", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "buckets", Type: arrow.ListOf(bucketType)},
		)},
	}, nil)
)

// batchRows is the number of rows that are encoded at once.
const batchRows = 8 << 10

// Parquet writes one Parquet file, a row a sample. Stale markers are no rows, and counted as
// skipped.
type Parquet struct {
	Report Report

	w    encode.Writer
	b    *array.RecordBuilder
	rows int // of the batch at hand
}

// NewParquet writes to w. Close ends the file and releases memory.
func NewParquet(w io.Writer) (*Parquet, error) {
	enc, err := encode.New(encode.Parquet, w, parquetSchema, nil)
	if err != nil {
		return nil, fmt.Errorf("begin a Parquet file: %w", err)
	}
	return &Parquet{w: enc, b: array.NewRecordBuilder(memory.DefaultAllocator, parquetSchema)}, nil
}

// Window implements Sink.
func (p *Parquet) Window(ctx context.Context, set storage.SeriesSet) error {
	return p.Report.each(ctx, set, p.series)
}

func (p *Parquet) series(ls labels.Labels, it chunkenc.Iterator) error {
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if kind == chunkenc.ValFloat {
			t, v := it.At()
			if value.IsStaleNaN(v) {
				p.Report.Skipped++
				continue
			}
			p.Report.Floats++
			p.sample(ls, t)
			p.b.Field(3).(*array.Float64Builder).Append(v)
			p.b.Field(4).AppendNull()
		} else {
			t, h := it.AtFloatHistogram(nil)
			if value.IsStaleNaN(h.Sum) {
				p.Report.Skipped++
				continue
			}
			p.Report.Hists++
			p.sample(ls, t)
			p.b.Field(3).AppendNull()
			appendHistogram(p.b.Field(4).(*array.StructBuilder), h)
		}
		if p.rows++; p.rows == batchRows {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample appends what a row has for every kind of sample.
func (p *Parquet) sample(ls labels.Labels, t int64) {
	p.b.Field(0).(*array.StringBuilder).Append(ls.Get(model.MetricNameLabel))
	m := p.b.Field(1).(*array.MapBuilder)
	m.Append(true)
	keys, values := m.KeyBuilder().(*array.StringBuilder), m.ItemBuilder().(*array.StringBuilder)
	ls.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			keys.Append(l.Name)
			values.Append(l.Value)
		}
	})
	p.b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(t))
}

// appendHistogram appends a histogram with the buckets that are not empty, from the lowest on.
func appendHistogram(b *array.StructBuilder, h *histogram.FloatHistogram) {
	b.Append(true)
	b.FieldBuilder(0).(*array.Float64Builder).Append(h.Count)
	b.FieldBuilder(1).(*array.Float64Builder).Append(h.Sum)
	b.FieldBuilder(2).(*array.Int32Builder).Append(h.Schema)
	list := b.FieldBuilder(3).(*array.ListBuilder)
	list.Append(true)
	bucket := list.ValueBuilder().(*array.StructBuilder)
	for it := h.AllBucketIterator(); it.Next(); {
		x := it.At()
		if x.Count == 0 {
			continue
		}
		bucket.Append(true)
		for i, v := range []float64{x.Lower, x.Upper, x.Count} {
			bucket.FieldBuilder(i).(*array.Float64Builder).Append(v)
		}
	}
}

func (p *Parquet) flush() error {
	batch := p.b.NewRecordBatch()
	defer batch.Release()
	p.rows = 0
	if err := p.w.Write(batch); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}

// Close ends the file. Without it, the file is none.
func (p *Parquet) Close() error {
	err := p.flush()
	p.b.Release()
	if err != nil {
		return err
	}
	if err := p.w.End(nil); err != nil {
		return fmt.Errorf("write Parquet: %w", err)
	}
	return nil
}
