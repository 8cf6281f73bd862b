package datadog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// The bins of the agent's sketches. A value v > 0 is in the bin with the key
// round(log v / log gamma) + bias, so at most half of a bin (0.78 %) from gamma^(key-bias); a
// negative one is in the bin with the negated key of -v, and what is closer to 0 than smallest is
// in bin 0. The largest keys stand for infinities.
const (
	gamma    = 1 + 2.0/128
	bias     = 1338
	smallest = 1e-9
	infinite = math.MaxInt16
)

// schema is that of the histograms. Their buckets are 2.2 % wide, a little more than bins, so that
// there are no empty ones between them.
const schema = 5

// maxBins bounds the bins of a sketch. The agent's have 4096.
const maxBins = 1 << 14

// sketch is a Dogsketch: the values of one series in one interval.
type sketch struct {
	seconds int64
	sum     float64
	keys    []int32
	counts  []uint64 // of keys
}

// sketchField reads a field of a Sketch: metric = 1, host = 2, tags = 4, dogsketches = 7.
func (d *decoder) sketchField(num protowire.Number, data []byte, _ uint64) error {
	if data == nil {
		return nil
	}
	switch num {
	case 1:
		d.metric = remotewrite.View(data)
	case 2:
		if len(data) > 0 {
			d.labels = append(d.labels, series.Label{Name: "host", Value: remotewrite.View(data)})
		}
	case 4:
		d.tags = append(d.tags, remotewrite.View(data))
	case 7:
		d.sketches = append(d.sketches, data)
	}
	return nil
}

// endSketches adds the sketches of the series at hand, and the series. An error means that there is
// no room, or that a sketch is malformed (ErrInvalid).
func (d *decoder) endSketches() error {
	for _, data := range d.sketches {
		if err := d.c.HistogramRoom(len(data)); err != nil {
			return err
		}
		s, err := readSketch(data)
		if err != nil {
			return fmt.Errorf("%w: series %d: %w", ErrInvalid, d.count, err)
		}
		h, err := s.histogram()
		if err == nil {
			err = d.c.Histogram(segment.Hist{T: s.seconds * 1000, H: h})
		} else {
			err = &remotewrite.Rejection{Reason: remotewrite.ReasonHistogram, Err: fmt.Errorf("series %d: %w", d.count, err)}
		}
		if err != nil {
			if err := d.c.Reject(err, 1); err != nil {
				return err
			}
			continue
		}
		d.hists++
	}
	return d.end()
}

// readSketch reads a Dogsketch: ts = 1, sum = 6, k = 7, n = 8. It does not need cnt = 2, which is
// the sum of n, and min = 3, max = 4 and avg = 5, which histograms do not have.
func readSketch(b []byte) (s sketch, err error) {
	err = fields(b, func(num protowire.Number, data []byte, val uint64) error {
		switch num {
		case 1:
			s.seconds = int64(val)
		case 6:
			s.sum = math.Float64frombits(val)
		case 7:
			return numbers(data, val, func(v uint64) { s.keys = append(s.keys, int32(protowire.DecodeZigZag(v))) })
		case 8:
			return numbers(data, val, func(v uint64) { s.counts = append(s.counts, uint64(uint32(v))) })
		}
		return nil
	})
	if err == nil && !(math.Abs(float64(s.seconds)) < 1e15) {
		err = fmt.Errorf("the timestamp %d is not a number of seconds", s.seconds)
	}
	return s, err
}

// numbers calls use with the numbers of a repeated field, which are packed in data, or one alone.
func numbers(data []byte, val uint64, use func(uint64)) error {
	if data == nil {
		use(val)
		return nil
	}
	for len(data) > 0 {
		v, n := protowire.ConsumeVarint(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		use(v)
		data = data[n:]
	}
	return nil
}

// histogram returns the sketch as a native histogram of the values of one interval. The value of a
// bin goes into the bucket that has it, so a value and the bounds of its bucket differ by at most
// 3 %.
func (s *sketch) histogram() (*histogram.Histogram, error) {
	if len(s.keys) != len(s.counts) {
		return nil, fmt.Errorf("a sketch has %d keys of bins and %d counts", len(s.keys), len(s.counts))
	}
	if len(s.keys) > maxBins {
		return nil, fmt.Errorf("a sketch has %d bins, the limit is %d", len(s.keys), maxBins)
	}
	h := &histogram.Histogram{CounterResetHint: histogram.GaugeType, Schema: schema, ZeroThreshold: smallest, Sum: s.sum}
	var positive, negative []filled
	for i, k := range s.keys {
		n := s.counts[i]
		h.Count += n
		switch {
		case k < -infinite || k > infinite:
			return nil, fmt.Errorf("a sketch has a bin with the key %d, want %d to %d", k, -infinite, infinite)
		case k == 0:
			h.ZeroCount += n
		case k > 0:
			positive = append(positive, filled{bucket(k), int64(n)})
		default:
			negative = append(negative, filled{bucket(-k), int64(n)})
		}
	}
	if h.Count == 0 {
		return nil, errors.New("a sketch has no value")
	}
	h.PositiveSpans, h.PositiveBuckets = spans(positive)
	h.NegativeSpans, h.NegativeBuckets = spans(negative)
	return h, nil
}

// filled is a bucket with values.
type filled struct {
	index int32
	count int64
}

// bucket returns the index of the bucket with the value of a bin.
func bucket(key int32) int32 {
	const perOctave = 1 << schema
	if key == infinite {
		return 1024 * perOctave // with the largest number
	}
	return int32(math.Ceil(float64(key-bias) * math.Log2(gamma) * perOctave))
}

// spans lays out buckets in any order, of which several may be the same.
func spans(all []filled) (out []histogram.Span, deltas []int64) {
	slices.SortFunc(all, func(a, b filled) int { return cmp.Compare(a.index, b.index) })
	next, before := int32(0), int64(0)
	for len(all) > 0 {
		i, n := all[0].index, int64(0)
		for len(all) > 0 && all[0].index == i {
			n, all = n+all[0].count, all[1:]
		}
		if len(out) == 0 || i > next {
			out = append(out, histogram.Span{Offset: i - next})
		}
		out[len(out)-1].Length++
		deltas = append(deltas, n-before)
		next, before = i+1, n
	}
	return out, deltas
}
