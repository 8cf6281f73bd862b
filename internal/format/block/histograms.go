package block

import (
	"math"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// Columns of histograms-NNNN.parquet in addition to metric, series_id and ts; ColHist is as in
// segments.
const (
	ColCount = "count"
	ColSum   = "sum"
)

// blobBytes is the size of messages or labels at which a row group of histograms or exemplars ends.
const blobBytes = 8 << 20

// blobs writes files with a row for each blob: numbers, and the blob as segments have it. These are
// histograms-NNNN.parquet and exemplars.parquet.
type blobs struct {
	keyColumns
	*table
	limit   int      // rows of a row group
	columns []string // of numbers
	column  string   // of blobs

	ts      []int64
	numbers [][]float64 // by column
	blobs   [][]byte
	bytes   int // of blobs
}

func newBlobs(t *table, o Options, column string, numbers ...string) *blobs {
	b := &blobs{table: t, limit: o.RowGroupRows, column: column, columns: numbers, numbers: make([][]float64, len(numbers))}
	b.keyColumns.reset()
	return b
}

func newHists(files Files, z *zstd.Encoder, o Options) *blobs {
	schema := keySchema("promlake_histograms",
		parquetfile.Bare(ColCount, format.Double), parquetfile.Bare(ColSum, format.Double), parquetfile.Bare(segment.ColHist, format.ByteArray))
	return newBlobs(newTable(files, z, HistogramsFile, o.FileBytes, schema), o, segment.ColHist, ColCount, ColSum)
}

func newExemplars(files Files, z *zstd.Encoder, o Options) *blobs {
	name := func(int) string { return ExemplarsFile }
	schema := keySchema("promlake_exemplars", parquetfile.Bare(segment.ColValue, format.Double), parquetfile.String(segment.ColLabels))
	return newBlobs(newTable(files, z, name, math.MaxInt64, schema), o, segment.ColLabels, segment.ColValue)
}

// addHists adds the histograms of the next series.
func (b *blobs) addHists(o *owner, samples []segment.Hist) error {
	for _, s := range samples {
		blob, err := segment.EncodeHist(s)
		if err == nil {
			count, sum := s.Count()
			err = b.add(o, s.T, blob, count, sum)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addExemplars adds the exemplars of the next series.
func (b *blobs) addExemplars(o *owner, list []exemplar.Exemplar) error {
	for _, e := range list {
		blob, err := segment.EncodeExemplarLabels(e)
		if err == nil {
			err = b.add(o, e.Ts, blob, e.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *blobs) add(o *owner, t int64, blob []byte, numbers ...float64) error {
	b.keyColumns.append(o, 1, t, t)
	b.ts, b.blobs = append(b.ts, t), append(b.blobs, blob)
	for i, v := range numbers {
		b.numbers[i] = append(b.numbers[i], v)
	}
	if b.bytes += len(blob); len(b.ts) == b.limit || b.bytes >= blobBytes {
		return b.flush()
	}
	return nil
}

// flush writes the open row group, if it has rows.
func (b *blobs) flush() error {
	if len(b.ts) == 0 {
		return nil
	}
	if err := b.begin(); err != nil {
		return err
	}
	b.write(b.table)
	b.pq.Add(parquetfile.Int64s(segment.ColTS, &b.s, b.ts))
	for i, name := range b.columns {
		b.pq.Add(parquetfile.Doubles(name, &b.s, b.numbers[i]), nil)
		b.numbers[i] = b.numbers[i][:0]
	}
	b.pq.Add(parquetfile.Binaries(b.column, &b.s, b.blobs), nil)
	g := b.group
	b.keyColumns.reset()
	clear(b.blobs)
	b.ts, b.blobs, b.bytes = b.ts[:0], b.blobs[:0], 0
	return b.endGroup(g)
}

// Columns of metadata.parquet in addition to metric.
const (
	ColType = "type"
	ColUnit = "unit"
	ColHelp = "help"
)

// writeMetadata writes metadata.parquet and returns its table.
func writeMetadata(files Files, z *zstd.Encoder, limit int, list []segment.Metadata) (*table, error) {
	s := parquetfile.NewSchema("promlake_metadata")
	for _, name := range []string{segment.ColMetric, ColType, ColUnit, ColHelp} {
		s.Add(parquetfile.String(name))
	}
	t := newTable(files, z, func(int) string { return MetadataFile }, math.MaxInt64, s)
	for len(list) > 0 {
		n := min(len(list), limit)
		if err := t.metadataGroup(list[:n]); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	return t, t.end()
}

// metadataGroup writes one row group.
func (t *table) metadataGroup(list []segment.Metadata) error {
	if err := t.begin(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		of   func(*segment.Metadata) string
	}{
		{segment.ColMetric, func(m *segment.Metadata) string { return m.Metric }},
		{ColType, func(m *segment.Metadata) string { return m.Type }},
		{ColUnit, func(m *segment.Metadata) string { return m.Unit }},
		{ColHelp, func(m *segment.Metadata) string { return m.Help }},
	} {
		values := make([][]byte, len(list))
		for i := range list {
			values[i] = []byte(c.of(&list[i]))
		}
		t.pq.Add(parquetfile.Binaries(c.name, &t.s, values), nil)
	}
	return t.endGroup(RowGroup{Rows: int64(len(list))})
}
