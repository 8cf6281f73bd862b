package segment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

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
