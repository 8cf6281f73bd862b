package otlp

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/remotewrite"
)

// number reads a NumberDataPoint: as_double = 4, exemplars = 5, as_int = 6, attributes = 7, flags =
// 8.
func (d *decoder) number(msg []byte) error {
	d.point = point{}
	p := &d.point
	var attributes, exemplars span
	v, given := 0.0, false
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		switch f.num {
		case 4:
			v, given, err = math.Float64frombits(f.val), true, f.is(protowire.Fixed64Type, "NumberDataPoint")
		case 5:
			exemplars.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message("NumberDataPoint")
		case 6:
			v, given, err = float64(int64(f.val)), true, f.is(protowire.Fixed64Type, "NumberDataPoint")
		case 7:
			attributes.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message("NumberDataPoint")
		default:
			err = p.common(&f, 8)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	p.attributes = attributes.of(msg)
	if !given && !p.stale {
		return d.refuse(&remotewrite.Rejection{Reason: remotewrite.ReasonPoint, Err: errors.New("data point without a value")})
	}
	if ok, err := d.accept(); !ok {
		return err
	}
	d.float(v)
	if err := d.exemplars(exemplars.of(msg)); err != nil {
		return err
	}
	if err := d.single(); err != nil {
		return err
	}
	d.seen()
	return nil
}

// summary reads a SummaryDataPoint: count = 4, sum = 5, quantile_values = 6, attributes = 7, flags
// = 8.
func (d *decoder) summary(msg []byte) error {
	d.point = point{}
	p := &d.point
	var attributes, quantiles span
	var count, sum uint64
	for b := msg; len(b) > 0; {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		switch f.num {
		case 4:
			count, err = f.val, f.is(protowire.Fixed64Type, "SummaryDataPoint")
		case 5:
			sum, err = f.val, f.is(protowire.Fixed64Type, "SummaryDataPoint")
		case 6:
			quantiles.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message("SummaryDataPoint")
		case 7:
			attributes.add(msg, len(msg)-len(b), len(msg)-len(rest))
			err = f.message("SummaryDataPoint")
		default:
			err = p.common(&f, 8)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	p.attributes = attributes.of(msg)
	if ok, err := d.accept(); !ok {
		return err
	}
	list := quantiles.of(msg)
	d.members()
	widest := member{kind: memberCount}
	if len(list) > 0 {
		widest.kind = memberQuantile
	}
	if err := d.member(member{kind: memberSum}, widest, math.Float64frombits(sum)); err != nil {
		return err
	}
	if err := d.member(member{kind: memberCount}, widest, float64(count)); err != nil {
		return err
	}
	for len(list) > 0 {
		f, rest, err := next(list)
		if err != nil {
			return err
		}
		list = rest
		q, v, err := quantile(f.data)
		if err != nil {
			return err
		}
		if err := d.member(member{kind: memberQuantile, value: q}, widest, v); err != nil {
			return err
		}
	}
	d.seen()
	return nil
}

// quantile reads a ValueAtQuantile: quantile = 1, value = 2.
func quantile(msg []byte) (q, v float64, err error) {
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return 0, 0, err
		}
		msg = rest
		switch f.num {
		case 1:
			q, err = math.Float64frombits(f.val), f.is(protowire.Fixed64Type, "ValueAtQuantile")
		case 2:
			v, err = math.Float64frombits(f.val), f.is(protowire.Fixed64Type, "ValueAtQuantile")
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return q, v, nil
}
