package otlp

import (
	"errors"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// number reads a NumberDataPoint: as_double = 4, exemplars = 5, as_int = 6, attributes = 7, flags =
// 8.
func (d *decoder) number(msg []byte) error {
	d.point = point{}
	p := &d.point
	var exemplars span
	v, given := 0.0, false
	r := read(msg, "NumberDataPoint")
	for r.next() {
		switch r.num {
		case 4:
			v, given = r.double(), true
		case 5:
			exemplars.add(&r)
		case 6:
			v, given = float64(int64(r.fixed64())), true
		case 7:
			p.attributes.add(&r)
		default:
			p.common(&r, 8)
		}
	}
	if r.err == nil && !given && !p.stale {
		return d.refuse(&remotewrite.Rejection{Reason: remotewrite.ReasonPoint, Err: errors.New("data point without a value")})
	}
	if ok, err := d.accept(r.err); !ok {
		return err
	}
	d.float(v)
	return d.single(exemplars.bytes)
}

// summary reads a SummaryDataPoint: count = 4, sum = 5, quantile_values = 6, attributes = 7, flags
// = 8.
func (d *decoder) summary(msg []byte) error {
	d.point = point{}
	p := &d.point
	var quantiles span
	var count uint64
	var sum float64
	r := read(msg, "SummaryDataPoint")
	for r.next() {
		switch r.num {
		case 4:
			count = r.fixed64()
		case 5:
			sum = r.double()
		case 6:
			quantiles.add(&r)
		case 7:
			p.attributes.add(&r)
		default:
			p.common(&r, 8)
		}
	}
	if ok, err := d.accept(r.err); !ok {
		return err
	}
	d.members()
	widest := member{kind: memberCount}
	if len(quantiles.bytes) > 0 {
		widest.kind = memberQuantile
	}
	if err := d.member(member{kind: memberSum}, widest, sum); err != nil {
		return err
	}
	if err := d.member(member{kind: memberCount}, widest, float64(count)); err != nil {
		return err
	}
	err := each(quantiles.bytes, 6, "SummaryDataPoint", func(quantile []byte) error {
		var q, v float64
		r := read(quantile, "ValueAtQuantile") // quantile = 1, value = 2
		for r.next() {
			switch r.num {
			case 1:
				q = r.double()
			case 2:
				v = r.double()
			}
		}
		if r.err != nil {
			return r.err
		}
		return d.member(member{kind: memberQuantile, value: q}, widest, v)
	})
	if err != nil {
		return err
	}
	d.seen()
	return nil
}
