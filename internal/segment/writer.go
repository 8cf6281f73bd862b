package segment

import (
	"bytes"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/parquetfile"
)

// Bounds of a row group: maxGroupRows is the largest number of series; a group ends with the series
// that reaches maxGroupSamples float samples.
const (
	maxGroupRows    = 32 << 10
	maxGroupSamples = 1 << 20
)

// Writer encodes batches. It reuses its buffers for later files and is not safe for concurrent use.
type Writer struct {
	groupRows, groupSamples int // maxGroupRows, maxGroupSamples

	out    bytes.Buffer
	file   *parquetfile.Writer
	series SeriesColumns
	s      parquetfile.Scratch
	lists  parquetfile.Lists
	counts []int
}

// NewWriter returns a writer. It fails only if the zstd encoder cannot be created.
func NewWriter() (*Writer, error) {
	z, err := (*parquetfile.Encoders)(nil).Get(zstd.SpeedFastest)
	if err != nil {
		return nil, err
	}
	return &Writer{groupRows: maxGroupRows, groupSamples: maxGroupSamples, file: parquetfile.NewWriter(z)}, nil
}

// Write encodes b as a segment. The bytes are valid until the next call.
func (w *Writer) Write(b *Batch) ([]byte, Info, error) {
	w.series.Plan(b.View, b.Rows)
	shape := shape{st: b.ST != nil, hist: len(b.Hists) > 0, exemplars: len(b.Exemplars) > 0}
	plain := 0
	if len(b.Rows) == 0 || w.groupEnd(b, 0) == len(b.Rows) {
		plain = parquetfile.MinCompress
	}
	w.out.Reset()
	if err := w.file.Begin(&w.out, shape.schema(&w.series), createdBy, plain); err != nil {
		return nil, Info{}, err
	}
	at := cursor{}
	for at.row < len(b.Rows) {
		if err := w.group(b, shape, &at); err != nil {
			return nil, Info{}, err
		}
	}
	info := describe(b, shape, &w.series)
	kv, err := info.keyValues()
	if err != nil {
		return nil, Info{}, err
	}
	err = w.file.End(kv)
	return w.out.Bytes(), info, err
}

// cursor is the position of the next row group in a batch.
type cursor struct{ row, sample, hist, exemplar int }

// group writes the row group that begins at the cursor, and advances the cursor.
func (w *Writer) group(b *Batch, shape shape, at *cursor) error {
	end := w.groupEnd(b, at.row)
	w.series.Write(w.file, &w.s, b.View, b.Rows[at.row:end], nil)
	w.floatColumns(b, at, end)
	if shape.hist {
		if err := w.histColumns(b, at, end); err != nil {
			return err
		}
	}
	if shape.exemplars {
		if err := w.exemplarColumns(b, at, end); err != nil {
			return err
		}
	}
	_, err := w.file.EndGroup(end - at.row)
	at.row = end
	return err
}

// groupEnd returns the row after the group that begins at row.
func (w *Writer) groupEnd(b *Batch, row int) int {
	first := 0
	if row > 0 {
		first = b.End[row-1]
	}
	end := min(len(b.Rows), row+w.groupRows)
	n, _ := slices.BinarySearch(b.End[row:end], first+w.groupSamples)
	return min(end, row+n+1)
}
