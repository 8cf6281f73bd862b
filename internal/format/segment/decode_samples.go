package segment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// floats appends the float samples of a row group.
func (d *decoder) floats() error {
	b := d.batch
	first := len(b.V)
	var err error
	if b.V, d.lists.counts, err = appendLists(&d.lists, b.V, d.lists.counts, parquetfile.ListPath(ColValue), doubleLists); err != nil {
		return err
	}
	counts := d.lists.counts
	if b.TS, err = d.lists.int64s(b.TS, ColTS, counts, len(b.V)-first); err != nil {
		return err
	}
	if d.lists.has(ColST) {
		if b.ST, err = d.lists.int64s(b.ST, ColST, counts, len(b.V)-first); err != nil {
			return err
		}
	}
	at := first
	b.End = slices.Grow(b.End, len(counts))
	for _, n := range counts {
		if n > 1 {
			if err := ascending(b.TS[at : at+n]); err != nil {
				return err
			}
		}
		at += n
		b.End = append(b.End, at)
	}
	return nil
}

// ascending checks that the times of a row are strictly ascending.
func ascending(ts []int64) error {
	for i := 1; i < len(ts); i++ {
		if ts[i] <= ts[i-1] {
			return fmt.Errorf("%w: time %d ms after %d ms in one series", ErrFormat, ts[i], ts[i-1])
		}
	}
	return nil
}

// hists appends the native histograms of a row group. row is the index of the group's first row in
// the batch.
func (d *decoder) hists(row int) error {
	if !d.lists.has(ColHist) {
		return nil
	}
	blobs, counts, err := appendLists(&d.lists, nil, nil, parquetfile.ListPath(ColHist), blobLists)
	if err != nil {
		return err
	}
	ts, err := d.lists.int64s(nil, ColHistTS, counts, len(blobs))
	if err != nil {
		return err
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		rh := RowHists{Row: row + i, Samples: make([]Hist, n)}
		for j := range rh.Samples {
			if rh.Samples[j], err = decodeHistAt(blobs[j], ts[j]); err != nil {
				return err
			}
		}
		if err := ascending(ts[:n]); err != nil {
			return err
		}
		blobs, ts = blobs[n:], ts[n:]
		d.batch.Hists = append(d.batch.Hists, rh)
	}
	return nil
}

// decodeHistAt decodes a histogram, whose time must be t as column h_ts has it.
func decodeHistAt(blob string, t int64) (Hist, error) {
	h, err := DecodeHist(unsafe.Slice(unsafe.StringData(blob), len(blob)))
	if err != nil {
		return Hist{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if h.T != t {
		return Hist{}, fmt.Errorf("%w: histogram at %d ms in its column is at %d ms in its message", ErrFormat, t, h.T)
	}
	return h, nil
}

// exemplars appends the exemplars of a row group. row is the index of the group's first row in the
// batch.
func (d *decoder) exemplars(row int) error {
	if !d.lists.has(ColExTS) {
		return nil
	}
	values, counts, err := appendLists(&d.lists, nil, nil, parquetfile.ListPath(ColExValue), doubleLists)
	if err != nil {
		return err
	}
	ts, err := d.lists.int64s(nil, ColExTS, counts, len(values))
	if err != nil {
		return err
	}
	lsets, labelCounts, err := appendLists(&d.lists, nil, nil, parquetfile.ListPath(ColExLabels), blobLists)
	if err != nil {
		return err
	}
	if !slices.Equal(counts, labelCounts) {
		return fmt.Errorf("%w: column %s is not aligned with the others", ErrFormat, ColExLabels)
	}
	at := 0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		re := RowExemplars{Row: row + i, Exemplars: make([]exemplar.Exemplar, n)}
		for j := range re.Exemplars {
			l, err := DecodeExemplarLabels([]byte(lsets[at]))
			if err != nil {
				return fmt.Errorf("%w: %w", ErrFormat, err)
			}
			re.Exemplars[j] = exemplar.Exemplar{Labels: l, Value: values[at], Ts: ts[at], HasTs: true}
			at++
		}
		d.batch.Exemplars = append(d.batch.Exemplars, re)
	}
	return nil
}

// EncodeHist encodes an element of column h: an io.prometheus.write.v2.Histogram message
// (remote-write 2.0) with its timestamps, so that any remote-write library can decode it.
func EncodeHist(h Hist) ([]byte, error) {
	var m writev2.Histogram
	if h.FH != nil {
		m = writev2.FromFloatHistogram(h.ST, h.T, h.FH)
	} else {
		m = writev2.FromIntHistogram(h.ST, h.T, h.H)
	}
	b, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	if m.Sum == 0 && math.Signbit(m.Sum) { // Marshal omits -0, because it equals the default
		b = binary.LittleEndian.AppendUint64(append(b, sumTag), math.Float64bits(m.Sum))
	}
	return b, nil
}

// sumTag is the tag of the field sum = 3 (double) of a Histogram message.
const sumTag = 3<<3 | 1

// DecodeHist is the inverse of EncodeHist.
func DecodeHist(b []byte) (Hist, error) {
	var m writev2.Histogram
	if err := m.Unmarshal(b); err != nil {
		return Hist{}, fmt.Errorf("decode histogram: %w", err)
	}
	h := Hist{ST: m.StartTimestamp, T: m.Timestamp}
	if m.IsFloatHistogram() {
		h.FH = m.ToFloatHistogram()
	} else {
		h.H = m.ToIntHistogram()
	}
	return h, nil
}

// Count returns the number of observations and their sum.
func (h Hist) Count() (count, sum float64) {
	if h.FH != nil {
		return h.FH.Count, h.FH.Sum
	}
	return float64(h.H.Count), h.H.Sum
}

// EncodeExemplarLabels encodes an element of column ex_labels: a JSON object of strings, sorted by
// name.
func EncodeExemplarLabels(e exemplar.Exemplar) ([]byte, error) {
	b, err := json.Marshal(e.Labels)
	if err != nil {
		return nil, fmt.Errorf("encode exemplar labels: %w", err)
	}
	return b, nil
}

// DecodeExemplarLabels is the inverse of EncodeExemplarLabels.
func DecodeExemplarLabels(b []byte) (labels.Labels, error) {
	var l labels.Labels
	if err := json.Unmarshal(b, &l); err != nil {
		return labels.EmptyLabels(), fmt.Errorf("decode exemplar labels: %w", err)
	}
	return l, nil
}
