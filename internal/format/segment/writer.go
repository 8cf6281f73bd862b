package segment

import (
	"bytes"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
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
	values []uint64 // hashes of the labels of the file
	labels known    // of the last file that was not repeated
}

// NewWriter returns a writer. It fails only if the zstd encoder cannot be created.
func NewWriter() (*Writer, error) {
	z, err := (*parquetfile.Encoders)(nil).Get(zstd.SpeedFastest)
	if err != nil {
		return nil, err
	}
	return &Writer{groupRows: maxGroupRows, groupSamples: maxGroupSamples, file: parquetfile.NewWriter(z)}, nil
}

// Write encodes b as a segment. The bytes are valid until the next call. They are the same with any
// Repeats, which may be nil.
func (w *Writer) Write(b *Batch, repeats *Repeats) ([]byte, Info, error) {
	shape := shape{st: b.ST != nil, hist: len(b.Hists) > 0, exemplars: len(b.Exemplars) > 0}
	single := len(b.Rows) == 0 || w.groupEnd(b, 0) == len(b.Rows)
	if repeats == nil || !single || len(b.Rows) == 0 {
		return w.fresh(b, shape, single, repeats)
	}
	hash := hashRows(b.Rows, shape)
	if k := repeats.find(hash, b, shape); k != nil { // b has one row group, after a beginning that is known
		w.out.Reset()
		if err := w.file.Resume(&w.out, k.prefix, createdBy, parquetfile.MinCompress); err != nil {
			return nil, Info{}, err
		}
		if err := w.group(b, k.shape, &cursor{}, len(b.Rows)); err != nil {
			return nil, Info{}, err
		}
		return w.end(b, k.shape, k.labels)
	}
	file, info, err := w.fresh(b, shape, single, repeats)
	if err == nil && repeats.again(hash) {
		repeats.keep(hash, b, &repeat{shape: shape, labels: w.labels, prefix: w.file.Prefix(file, w.series.Chunks())})
	}
	return file, info, err
}

// fresh encodes b. single says that it has at most one row group.
func (w *Writer) fresh(b *Batch, shape shape, single bool, repeats *Repeats) ([]byte, Info, error) {
	unknown := w.series.plan(b.View, b.Rows, repeats.columns(b))
	if repeats != nil {
		repeats.read += unknown
	}
	plain := 0
	if single {
		plain = parquetfile.MinCompress
	}
	w.out.Reset()
	if err := w.file.Begin(&w.out, shape.schema(&w.series), createdBy, plain); err != nil {
		return nil, Info{}, err
	}
	at := cursor{}
	w.values = w.values[:0]
	for at.row < len(b.Rows) {
		end := w.groupEnd(b, at.row)
		w.series.Write(w.file, &w.s, b.View, b.Rows[at.row:end], nil)
		w.values = w.series.hashValues(w.values)
		if err := w.group(b, shape, &at, end); err != nil {
			return nil, Info{}, err
		}
	}
	w.labels = known{names: w.series.Names, mapNames: w.series.MapNames, values: valuesOf(w.values)}
	if runs := w.series.labelRuns(len(b.Rows)); len(runs) > 0 {
		w.labels.runs = runs.text(len(w.labels.names))
	}
	return w.end(b, shape, w.labels)
}

// end writes the footer.
func (w *Writer) end(b *Batch, shape shape, l known) ([]byte, Info, error) {
	info := Info{
		Version: FormatVersion, Rows: int64(len(b.Rows)), Samples: int64(len(b.TS)), MinT: math.MaxInt64, MaxT: math.MinInt64,
		LabelColumns: l.names, MapNames: l.mapNames, HasST: shape.st, HasHist: shape.hist, HasExemplars: shape.exemplars, Metadata: b.Metadata, Values: l.values,
	}
	see := func(t int64) { info.MinT, info.MaxT = min(info.MinT, t), max(info.MaxT, t) }
	for _, t := range b.TS {
		see(t)
	}
	for _, r := range b.Hists {
		info.Samples += int64(len(r.Samples))
		for _, h := range r.Samples {
			see(h.T)
		}
	}
	for _, r := range b.Exemplars {
		for _, e := range r.Exemplars {
			see(e.Ts)
		}
	}
	if info.MinT > info.MaxT { // metadata only
		info.MinT, info.MaxT = 0, -1
	}
	kv, err := info.keyValues()
	if err != nil {
		return nil, Info{}, err
	}
	if l.runs != "" {
		kv = append(kv, format.KeyValue{Key: kvLabels, Value: l.runs})
	}
	err = w.file.End(kv)
	return w.out.Bytes(), info, err
}

// cursor is the position of the next row group in a batch.
type cursor struct{ row, sample, hist, exemplar int }

// valuePageRows is the number of rows of a page of column value, where each row has one sample.
const valuePageRows = 4096

// group writes the samples of the row group from the cursor to the row end, and advances the
// cursor.
func (w *Writer) group(b *Batch, shape shape, at *cursor, end int) error {
	from := at.sample
	counts := w.counts[:0]
	for _, e := range b.End[at.row:end] {
		counts = append(counts, e-at.sample)
		at.sample = e
	}
	w.counts = counts
	w.lists.Build(&w.s, counts)
	w.file.Add(w.lists.Int64s(parquetfile.ListPath(ColTS), &w.s, b.TS[from:at.sample]))
	w.file.Add(w.lists.DoublePages(parquetfile.ListPath(ColValue), &w.s, b.V[from:at.sample], valuePageRows), nil)
	if b.ST != nil {
		w.file.Add(w.lists.Int64s(parquetfile.ListPath(ColST), &w.s, b.ST[from:at.sample]))
	}
	if shape.hist {
		var ts []int64
		var count, sum []float64
		var blobs [][]byte
		counts := append(w.counts[:0], make([]int, end-at.row)...)
		for ; at.hist < len(b.Hists) && b.Hists[at.hist].Row < end; at.hist++ {
			rh := b.Hists[at.hist]
			counts[rh.Row-at.row] = len(rh.Samples)
			for _, h := range rh.Samples {
				blob, err := EncodeHist(h)
				if err != nil {
					return err
				}
				c, s := h.Count()
				ts, count, sum, blobs = append(ts, h.T), append(count, c), append(sum, s), append(blobs, blob)
			}
		}
		w.counts = counts
		w.lists.Build(&w.s, counts)
		w.file.Add(w.lists.Int64s(parquetfile.ListPath(ColHistTS), &w.s, ts))
		w.file.Add(w.lists.Doubles(parquetfile.ListPath(ColHistCount), &w.s, count), nil)
		w.file.Add(w.lists.Doubles(parquetfile.ListPath(ColHistSum), &w.s, sum), nil)
		w.file.Add(w.lists.Binaries(parquetfile.ListPath(ColHist), &w.s, blobs), nil)
	}
	if shape.exemplars {
		var ts []int64
		var values []float64
		var labels [][]byte
		counts := append(w.counts[:0], make([]int, end-at.row)...)
		for ; at.exemplar < len(b.Exemplars) && b.Exemplars[at.exemplar].Row < end; at.exemplar++ {
			re := b.Exemplars[at.exemplar]
			counts[re.Row-at.row] = len(re.Exemplars)
			for _, e := range re.Exemplars {
				l, err := EncodeExemplarLabels(e)
				if err != nil {
					return err
				}
				ts, values, labels = append(ts, e.Ts), append(values, e.Value), append(labels, l)
			}
		}
		w.counts = counts
		w.lists.Build(&w.s, counts)
		w.file.Add(w.lists.Int64s(parquetfile.ListPath(ColExTS), &w.s, ts))
		w.file.Add(w.lists.Doubles(parquetfile.ListPath(ColExValue), &w.s, values), nil)
		w.file.Add(w.lists.Binaries(parquetfile.ListPath(ColExLabels), &w.s, labels), nil)
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
