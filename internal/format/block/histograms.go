package block

import (
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

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
