package block

import (
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// exemplars writes exemplars.parquet: metric, series_id, ts, value and labels, the last two encoded
// as in segments.
type exemplars struct {
	keyColumns
	*table
	limit int // rows of a row group

	ts     []int64
	values []float64
	labels [][]byte
	bytes  int // of labels
}

func newExemplars(files Files, z *zstd.Encoder, o Options) *exemplars {
	name := func(int) string { return ExemplarsFile }
	schema := keySchema("promlake_exemplars", parquetfile.Bare(segment.ColValue, format.Double), parquetfile.String(segment.ColLabels))
	x := &exemplars{table: newTable(files, z, name, math.MaxInt64, schema), limit: o.RowGroupRows}
	x.keyColumns.reset()
	return x
}

// append adds the exemplars of the next series.
func (x *exemplars) append(o *owner, list []exemplar.Exemplar) error {
	for _, e := range list {
		labels, err := segment.EncodeExemplarLabels(e)
		if err != nil {
			return err
		}
		x.keyColumns.append(o, 1, e.Ts, e.Ts)
		x.ts, x.values, x.labels = append(x.ts, e.Ts), append(x.values, e.Value), append(x.labels, labels)
		if x.bytes += len(labels); len(x.ts) == x.limit || x.bytes >= blobBytes {
			if err := x.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the open row group, if it has rows.
func (x *exemplars) flush() error {
	if len(x.ts) == 0 {
		return nil
	}
	if err := x.begin(); err != nil {
		return err
	}
	x.write(x.table)
	x.pq.Add(parquetfile.Int64s(segment.ColTS, &x.s, x.ts))
	x.pq.Add(parquetfile.Doubles(segment.ColValue, &x.s, x.values), nil)
	x.pq.Add(parquetfile.Binaries(segment.ColLabels, &x.s, x.labels), nil)
	g := x.group
	x.keyColumns.reset()
	clear(x.labels)
	x.ts, x.values, x.labels, x.bytes = x.ts[:0], x.values[:0], x.labels[:0], 0
	return x.endGroup(g)
}
