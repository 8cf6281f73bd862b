package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// A row group holds at most this many series. It ends with the series that brings it to so many float samples.
const (
	maxGroupRows    = 32 << 10
	maxGroupSamples = 1 << 20
)

// Writer encodes batches. It keeps its buffers between files and belongs to one goroutine at a time.
type Writer struct {
	groupRows, groupSamples int // maxGroupRows, maxGroupSamples

	file    fileWriter
	metric  dictColumn
	columns []dictColumn // by name ordinal of the view
	kind    []labelKind  // by name ordinal of the view
	ord     []uint32     // by column: name ordinal
	s       scratch
	lists   lists
	counts  []int
}

// labelKind says where the labels of one name go.
type labelKind uint8

const (
	unused labelKind = iota
	inColumn
	inLabelsMap
)

// NewWriter returns a writer.
func NewWriter() (*Writer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("create zstd encoder: %w", err)
	}
	return &Writer{groupRows: maxGroupRows, groupSamples: maxGroupSamples, file: fileWriter{zstd: z}}, nil
}

// Write encodes b into one Parquet file, which is valid until the next call.
func (w *Writer) Write(b *Batch) ([]byte, Info, error) {
	shape := w.plan(b)
	w.file.begin(shape.schema(), len(b.Rows) == 0 || w.groupEnd(b, 0) == len(b.Rows))
	at := cursor{}
	for at.row < len(b.Rows) {
		if err := w.group(b, shape, &at); err != nil {
			return nil, Info{}, err
		}
	}
	info := describe(b, shape)
	kv, err := info.keyValues()
	if err != nil {
		return nil, Info{}, err
	}
	out, err := w.file.end(kv)
	return out, info, err
}

// cursor is the position of the next row group in a batch.
type cursor struct{ row, sample, hist, exemplar int }

// plan finds the label names that the batch uses and gives each its place.
func (w *Writer) plan(b *Batch) *shape {
	v := b.View
	w.kind = append(w.kind[:0], make([]labelKind, len(v.Names))...)
	ords := w.ord[:0]
	for _, r := range b.Rows {
		for _, p := range v.Pairs(r) {
			if w.kind[p.Name] == unused {
				w.kind[p.Name] = inLabelsMap
				ords = append(ords, p.Name)
			}
		}
	}
	names := make([]string, len(ords))
	byName := make(map[string]uint32, len(ords))
	for i, o := range ords {
		names[i] = v.Names[o]
		byName[v.Names[o]] = o
	}
	s := &shape{st: b.ST != nil, hist: len(b.Hists) > 0, exemplars: len(b.Exemplars) > 0}
	s.labels, s.mapNames = split(names)
	w.ord = ords[:0]
	for _, n := range s.labels {
		w.ord = append(w.ord, byName[n])
		w.kind[byName[n]] = inColumn
	}
	if n := len(v.Names) - len(w.columns); n > 0 {
		w.columns = append(w.columns, make([]dictColumn, n)...)
	}
	return s
}

// group writes the row group that begins at the cursor and moves the cursor behind it.
func (w *Writer) group(b *Batch, shape *shape, at *cursor) error {
	end := w.groupEnd(b, at.row)
	if err := w.labelColumns(b, shape, at.row, end); err != nil {
		return err
	}
	if err := w.floatColumns(b, at, end); err != nil {
		return err
	}
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
	w.file.endGroup(end - at.row)
	at.row = end
	return nil
}

// groupEnd returns the row that ends the group which begins at row.
func (w *Writer) groupEnd(b *Batch, row int) int {
	first := 0
	if row > 0 {
		first = b.End[row-1]
	}
	end := min(len(b.Rows), row+w.groupRows)
	n, _ := slices.BinarySearch(b.End[row:end], first+w.groupSamples)
	return min(end, row+n+1)
}
