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

// hists writes histograms-NNNN.parquet.
type hists struct {
	keyColumns
	*table
	limit int // rows of a row group

	ts         []int64
	count, sum []float64
	blobs      [][]byte
	bytes      int // of blobs
}

func newHists(files Files, z *zstd.Encoder, o Options) *hists {
	schema := keySchema("promlake_histograms",
		parquetfile.Bare(ColCount, format.Double), parquetfile.Bare(ColSum, format.Double), parquetfile.Bare(segment.ColHist, format.ByteArray))
	h := &hists{table: newTable(files, z, HistogramsFile, o.FileBytes, schema), limit: o.RowGroupRows}
	h.keyColumns.reset()
	return h
}

// append adds the histograms of the next series.
func (h *hists) append(o *owner, samples []segment.Hist) error {
	for _, s := range samples {
		blob, err := segment.EncodeHist(s)
		if err != nil {
			return err
		}
		count, sum := s.Count()
		h.keyColumns.append(o, 1, s.T, s.T)
		h.ts, h.count, h.sum, h.blobs = append(h.ts, s.T), append(h.count, count), append(h.sum, sum), append(h.blobs, blob)
		if h.bytes += len(blob); len(h.ts) == h.limit || h.bytes >= blobBytes {
			if err := h.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes the open row group, if it has rows.
func (h *hists) flush() error {
	if len(h.ts) == 0 {
		return nil
	}
	if err := h.begin(); err != nil {
		return err
	}
	h.write(h.table)
	h.pq.Add(parquetfile.Int64s(segment.ColTS, &h.s, h.ts))
	h.pq.Add(parquetfile.Doubles(ColCount, &h.s, h.count), nil)
	h.pq.Add(parquetfile.Doubles(ColSum, &h.s, h.sum), nil)
	h.pq.Add(parquetfile.Binaries(segment.ColHist, &h.s, h.blobs), nil)
	g := h.group
	h.keyColumns.reset()
	clear(h.blobs)
	h.ts, h.count, h.sum, h.blobs, h.bytes = h.ts[:0], h.count[:0], h.sum[:0], h.blobs[:0], 0
	return h.endGroup(g)
}

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
