package otlp

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/remotewrite"
)

// zeroThreshold is the width of the zero bucket of a histogram that does not state it.
const zeroThreshold = 1e-128

// exponentialPoint is what an ExponentialHistogramDataPoint has besides its point.
type exponentialPoint struct {
	count, zeros       uint64
	sum                float64
	scale              int32
	positive, negative layout
	exemplars          []byte // fields
}

// exponential reads an ExponentialHistogramDataPoint: attributes = 1, count = 4, sum = 5, scale = 6,
// zero_count = 7, positive = 8, negative = 9, flags = 10, exemplars = 11. It becomes a native
// histogram.
func (d *decoder) exponential(msg []byte) error {
	d.point = point{}
	p := &d.point
	if err := d.c.HistogramRoom(len(msg)); err != nil {
		return err
	}
	var h exponentialPoint
	var attributes, exemplars, positive, negative span
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		const message = "ExponentialHistogramDataPoint"
		switch f.num {
		case 1:
			attributes.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message(message)
		case 4:
			h.count, err = f.val, f.is(protowire.Fixed64Type, message)
		case 5:
			h.sum, err = math.Float64frombits(f.val), f.is(protowire.Fixed64Type, message)
		case 6:
			h.scale, err = int32(protowire.DecodeZigZag(f.val&math.MaxUint32)), f.is(protowire.VarintType, message)
		case 7:
			h.zeros, err = f.val, f.is(protowire.Fixed64Type, message)
		case 8:
			positive.join(f.data)
			err = f.message(message)
		case 9:
			negative.join(f.data)
			err = f.message(message)
		case 11:
			exemplars.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message(message)
		default:
			err = p.common(&f, 10)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	p.attributes, h.exemplars = attributes.of(msg), exemplars.of(msg)
	if ok, err := d.accept(); !ok {
		return err
	}
	if h.scale < histogram.ExponentialSchemaMin {
		return d.refuse(&remotewrite.Rejection{Reason: remotewrite.ReasonHistogram,
			Err: fmt.Errorf("scale %d of an exponential histogram is lower than %d", h.scale, histogram.ExponentialSchemaMin)})
	}
	var err error
	if h.positive, err = d.side(positive.joined, h.scale); err == nil {
		h.negative, err = d.side(negative.joined, h.scale)
	}
	if errors.Is(err, ErrMalformed) {
		return err
	}
	if err != nil {
		return d.refuse(err)
	}
	return d.native(&histogram.Histogram{
		Schema: min(h.scale, histogram.ExponentialSchemaMax), Count: h.count, Sum: h.sum,
		ZeroThreshold: zeroThreshold, ZeroCount: h.zeros,
		PositiveSpans: h.positive.spans, PositiveBuckets: h.positive.deltas,
		NegativeSpans: h.negative.spans, NegativeBuckets: h.negative.deltas,
	}, h.exemplars)
}

// side reads Buckets: offset = 1, bucket_counts = 2. Buckets of a finer scale than native histograms
// have are merged. Bucket i of OTLP is bucket i+1 of a native histogram, since one counts from the
// lower and one from the upper bound.
func (d *decoder) side(msg []byte, scale int32) (l layout, err error) {
	var offset int32
	d.counts = d.counts[:0]
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return l, err
		}
		msg = rest
		switch f.num {
		case 1:
			offset, err = int32(protowire.DecodeZigZag(f.val&math.MaxUint32)), f.is(protowire.VarintType, "Buckets")
		case 2:
			err = d.varints(&f)
		}
		if err != nil {
			return l, err
		}
	}
	finer := max(scale-histogram.ExponentialSchemaMax, 0)
	for i, n := range d.counts {
		l.add((int64(offset)+int64(i))>>finer+1, n)
	}
	if l.outside {
		return l, &remotewrite.Rejection{Reason: remotewrite.ReasonHistogram, Err: fmt.Errorf("buckets of an exponential histogram beyond index %d", math.MaxInt32)}
	}
	return l, nil
}

// varints appends a repeated field of uint64 to d.counts, packed or not.
func (d *decoder) varints(f *field) error {
	if f.typ == protowire.VarintType {
		d.counts = append(d.counts, f.val)
		return nil
	}
	if err := f.message("Buckets"); err != nil {
		return err
	}
	for b := f.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return malformed(n)
		}
		d.counts = append(d.counts, v)
		b = b[n:]
	}
	return nil
}

// layout is the buckets of a native histogram: spans of buckets, and the difference of each count
// to the one before.
type layout struct {
	spans   []histogram.Span
	deltas  []int64
	last    int64 // index of the last bucket
	count   int64 // of the last bucket
	outside bool  // an index does not fit
}

// maxGap is the most empty buckets that are stored instead of a further span.
const maxGap = 2

// add adds n observations to the bucket with an index. Indexes never decrease.
func (l *layout) add(index int64, n uint64) {
	switch {
	case n == 0:
		return
	case index > math.MaxInt32 || index < math.MinInt32:
		l.outside = true
		return
	case len(l.spans) > 0 && index == l.last:
		l.deltas[len(l.deltas)-1] += int64(n)
		l.count += int64(n)
		return
	case len(l.spans) == 0:
		l.spans = append(l.spans, histogram.Span{Offset: int32(index)})
	case index-l.last-1 > maxGap:
		if index-l.last-1 > math.MaxInt32 {
			l.outside = true
			return
		}
		l.spans = append(l.spans, histogram.Span{Offset: int32(index - l.last - 1)})
	default:
		for range index - l.last - 1 {
			l.push(0)
		}
	}
	l.last = index
	l.push(int64(n))
}

func (l *layout) push(n int64) {
	l.spans[len(l.spans)-1].Length++
	l.deltas = append(l.deltas, n-l.count)
	l.count = n
}
