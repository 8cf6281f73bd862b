package otlp

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// zeroThreshold is the width of the zero bucket of a histogram that does not state it.
const zeroThreshold = 1e-128

// exponential reads an ExponentialHistogramDataPoint: attributes = 1, count = 4, sum = 5, scale =
// 6, zero_count = 7, positive = 8, negative = 9, flags = 10, exemplars = 11. It becomes a native
// histogram.
func (d *decoder) exponential(msg []byte) error {
	d.point = point{}
	p := &d.point
	if err := d.c.HistogramRoom(len(msg)); err != nil {
		return err
	}
	h := &histogram.Histogram{ZeroThreshold: zeroThreshold}
	var scale int32
	var exemplars, positive, negative span
	r := read(msg, "ExponentialHistogramDataPoint")
	for r.next() {
		switch r.num {
		case 1:
			p.attributes.add(&r)
		case 4:
			h.Count = r.fixed64()
		case 5:
			h.Sum = r.double()
		case 6:
			scale = r.sint32()
		case 7:
			h.ZeroCount = r.fixed64()
		case 8:
			positive.join(r.bytes())
		case 9:
			negative.join(r.bytes())
		case 11:
			exemplars.add(&r)
		default:
			p.common(&r, 10)
		}
	}
	if ok, err := d.accept(r.err); !ok {
		return err
	}
	if scale < histogram.ExponentialSchemaMin {
		return d.refuse(&remotewrite.Rejection{Reason: remotewrite.ReasonHistogram,
			Err: fmt.Errorf("scale %d of an exponential histogram is lower than %d", scale, histogram.ExponentialSchemaMin)})
	}
	h.Schema = min(scale, histogram.ExponentialSchemaMax)
	var err error
	if h.PositiveSpans, h.PositiveBuckets, err = d.side(positive.bytes, scale); err == nil {
		h.NegativeSpans, h.NegativeBuckets, err = d.side(negative.bytes, scale)
	}
	if errors.Is(err, ErrMalformed) {
		return err
	}
	if err != nil {
		return d.refuse(err)
	}
	return d.native(h, exemplars.bytes)
}

// side reads Buckets: offset = 1, bucket_counts = 2. Buckets of a finer scale than native
// histograms have are merged. Bucket i of OTLP is bucket i+1 of a native histogram, since one
// counts from the lower and one from the upper bound.
func (d *decoder) side(msg []byte, scale int32) ([]histogram.Span, []int64, error) {
	var l layout
	var offset int32
	d.counts = d.counts[:0]
	r := read(msg, "Buckets")
	for r.next() {
		switch r.num {
		case 1:
			offset = r.sint32()
		case 2:
			r.values(protowire.VarintType, d.count)
		}
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	finer := max(scale-histogram.ExponentialSchemaMax, 0)
	for i, n := range d.counts {
		l.add((int64(offset)+int64(i))>>finer+1, n)
	}
	if l.outside {
		return nil, nil, &remotewrite.Rejection{Reason: remotewrite.ReasonHistogram, Err: fmt.Errorf("buckets of an exponential histogram beyond index %d", math.MaxInt32)}
	}
	return l.spans, l.deltas, nil
}

func (d *decoder) count(n uint64) { d.counts = append(d.counts, n) }

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
