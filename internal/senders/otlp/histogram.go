package otlp

import (
	"cmp"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/segment"
)

// explicitPoint is what a HistogramDataPoint has besides its point and the buckets in d.counts and
// d.bounds.
type explicitPoint struct {
	count     uint64
	sum       float64
	hasSum    bool
	exemplars []byte // fields
}

// explicit reads a HistogramDataPoint: count = 4, sum = 5, bucket_counts = 6, explicit_bounds = 7,
// exemplars = 8, attributes = 9, flags = 10. It becomes the series of a classic histogram, or a
// native histogram with custom buckets.
func (d *decoder) explicit(msg []byte) error {
	d.point = point{}
	p := &d.point
	d.counts, d.bounds = d.counts[:0], d.bounds[:0]
	var h explicitPoint
	var exemplars span
	r := read(msg, "HistogramDataPoint")
	for r.next() {
		switch r.num {
		case 4:
			h.count = r.fixed64()
		case 5:
			h.sum, h.hasSum = r.double(), true
		case 6:
			r.values(protowire.Fixed64Type, d.count)
		case 7:
			r.values(protowire.Fixed64Type, func(v uint64) { d.bounds = append(d.bounds, math.Float64frombits(v)) })
		case 8:
			exemplars.add(&r)
		case 9:
			p.attributes.add(&r)
		default:
			p.common(&r, 10)
		}
	}
	h.exemplars = exemplars.bytes
	if ok, err := d.accept(r.err); !ok {
		return err
	}
	if d.set.NHCB {
		return d.custom(h, len(msg))
	}
	if err := d.buckets(h); err != nil {
		return err
	}
	d.seen()
	return nil
}

// buckets adds the series of a classic histogram.
func (d *decoder) buckets(h explicitPoint) error {
	widest := member{kind: memberBucket, value: math.Inf(1)}
	d.members()
	if h.hasSum {
		if err := d.member(member{kind: memberSum}, widest, h.sum); err != nil {
			return err
		}
	}
	if err := d.member(member{kind: memberCount}, widest, float64(h.count)); err != nil {
		return err
	}
	left, err := d.sortedExemplars(h.exemplars)
	if err != nil {
		return err
	}
	var below uint64
	for i, bound := range d.bounds {
		if i == len(d.counts) {
			break
		}
		below += d.counts[i]
		for len(left) > 0 && left[0].Value <= bound {
			if !d.point.refused {
				d.c.Exemplar(left[0])
			}
			left = left[1:]
		}
		if err := d.member(member{kind: memberBucket, value: bound}, widest, float64(below)); err != nil {
			return err
		}
	}
	for _, e := range left {
		if !d.point.refused {
			d.c.Exemplar(e)
		}
	}
	return d.member(widest, widest, float64(h.count))
}

// sortedExemplars reads the fields with the exemplars of a histogram, which belong to its buckets.
func (d *decoder) sortedExemplars(fields []byte) (list []exemplar.Exemplar, err error) {
	err = d.exemplars(fields, func(e exemplar.Exemplar) error {
		list = append(list, e)
		return d.c.HistogramRoom(0) // exemplars wait for their buckets
	})
	slices.SortStableFunc(list, func(a, b exemplar.Exemplar) int { return cmp.Compare(a.Value, b.Value) })
	return list, err
}

// custom adds a native histogram with custom buckets, for which the message had size bytes.
func (d *decoder) custom(h explicitPoint, size int) error {
	if err := d.c.HistogramRoom(size); err != nil {
		return err
	}
	out := &histogram.Histogram{Schema: histogram.CustomBucketsSchema, Count: h.count, Sum: h.sum, CustomValues: slices.Clone(d.bounds)}
	var l layout
	for i, n := range d.counts {
		l.add(int64(i), n)
	}
	out.PositiveSpans, out.PositiveBuckets = l.spans, l.deltas
	return d.native(out, h.exemplars)
}

// native adds the native histogram of the data point at hand, with its exemplars.
func (d *decoder) native(h *histogram.Histogram, exemplars []byte) error {
	p := &d.point
	if d.metric.temporality == delta {
		h.CounterResetHint = histogram.GaugeType
	}
	if p.stale {
		*h = histogram.Histogram{Sum: p.value(0)}
	}
	if err := d.c.Histogram(segment.Hist{ST: millis(p.start), T: millis(p.time), H: h}); err != nil {
		return d.refuse(err)
	}
	return d.single(exemplars)
}
