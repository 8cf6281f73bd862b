package segment

import (
	"github.com/promlake/promlake/internal/format/parquetfile"
)

// valuePageRows is the number of rows of a page of column value, where each row has one sample.
const valuePageRows = 4096

// floatColumns writes the float samples of the rows up to end, and advances the cursor's sample.
func (w *Writer) floatColumns(b *Batch, at *cursor, end int) {
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
}

// histColumns writes the native histograms of the rows up to end.
func (w *Writer) histColumns(b *Batch, at *cursor, end int) error {
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
	return nil
}

// exemplarColumns writes the exemplars of the rows up to end.
func (w *Writer) exemplarColumns(b *Batch, at *cursor, end int) error {
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
	return nil
}
