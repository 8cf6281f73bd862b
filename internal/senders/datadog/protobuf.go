package datadog

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// readPayload adds the series of a MetricPayload (series = 1) or of a SketchPayload (sketches = 1).
// field reads a field of one, and end adds it.
func (d *decoder) readPayload(field func(num protowire.Number, data []byte, v uint64) error, end func() error) error {
	err := fields(d.Body, func(num protowire.Number, data []byte, _ uint64) error {
		if num != 1 || data == nil {
			return nil
		}
		d.begin()
		if err := fields(data, field); err != nil {
			return fmt.Errorf("series %d: %w", d.count, err)
		}
		d.full = end()
		return d.full
	})
	if d.full != nil {
		return d.full
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// field reads a field of a MetricSeries: resources = 1, metric = 2, tags = 3, points = 4, type = 5,
// interval = 8.
func (d *decoder) field(num protowire.Number, data []byte, v uint64) error {
	switch {
	case data == nil && num == 5:
		d.setKind(int64(v))
		return nil
	case data == nil && num == 8:
		return d.setInterval(float64(int64(v)))
	case data == nil:
		return nil
	}
	switch num {
	case 1: // type = 1, name = 2
		var l series.Label
		err := fields(data, func(num protowire.Number, data []byte, _ uint64) error {
			switch num {
			case 1:
				l.Name = remotewrite.View(data)
			case 2:
				l.Value = remotewrite.View(data)
			}
			return nil
		})
		d.labels = append(d.labels, l)
		return err
	case 2:
		d.metric = remotewrite.View(data)
	case 3:
		d.tags = append(d.tags, remotewrite.View(data))
	case 4: // value = 1, timestamp = 2
		var v float64
		var seconds int64
		err := fields(data, func(num protowire.Number, _ []byte, val uint64) error {
			switch num {
			case 1:
				v = math.Float64frombits(val)
			case 2:
				seconds = int64(val)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return d.point(float64(seconds), v)
	}
	return nil
}

// errWire reports a field of a kind that the message does not have: fixed32, or a group.
var errWire = errors.New("a field has a type that the message does not have")

// fields calls use with each field of a message, in place: the bytes of a text or message, which
// are not nil, or a number.
func fields(b []byte, use func(num protowire.Number, data []byte, val uint64) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var data []byte
		var val uint64
		switch typ {
		case protowire.BytesType:
			if data, n = protowire.ConsumeBytes(b); data == nil {
				data = []byte{}
			}
		case protowire.Fixed64Type:
			val, n = protowire.ConsumeFixed64(b)
		case protowire.VarintType:
			val, n = protowire.ConsumeVarint(b)
		default:
			return errWire
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := use(num, data, val); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// kind is the type of a series as far as it matters for what its points mean. The numbers are those
// of version 2.
type kind int

const (
	other kind = 0 // a gauge, or not given
	count kind = 1 // events of an interval
	rate  kind = 2 // events of an interval, divided by its seconds
)

// kinds are the types that version 1 names, as they stand in JSON.
var kinds = map[string]kind{`"count"`: count, `"rate"`: rate}

// setKind notes a number of version 2.
func (d *decoder) setKind(number int64) {
	if d.kind = other; number == int64(count) || number == int64(rate) {
		d.kind = kind(number)
	}
}

// setInterval notes the seconds of an interval.
func (d *decoder) setInterval(seconds float64) error {
	if !(seconds >= 0 && seconds < 1e9) {
		return fmt.Errorf("the interval %v is not a number of seconds", seconds)
	}
	d.interval = seconds
	return nil
}

// point is a point of the series at hand.
type point struct {
	t int64 // ms
	v float64
}

// pointBytes is the memory of a point.
const pointBytes = 16

// point notes a point of the series at hand: type and interval may follow. An error other than
// d.full is the sender's.
func (d *decoder) point(seconds, v float64) error {
	if !(math.Abs(seconds) < 1e15) {
		return fmt.Errorf("the timestamp %v is not a number of seconds", seconds)
	}
	if len(d.points) == cap(d.points) {
		more := max(64, cap(d.points))
		if d.full = d.c.Take(pointBytes * int64(more)); d.full != nil {
			return d.full
		}
		d.points = slices.Grow(d.points, more)
	}
	d.points = append(d.points, point{int64(math.Round(seconds * 1000)), v})
	return nil
}

// addPoints adds the points of the series at hand, and reports whether they are of delta
// temporality: counts, and rates of a known interval, which become counts again. The agent gives a
// count the time of its end, or up to an interval earlier that of its beginning. Here all end at
// their time, so that a point keeps it.
func (d *decoder) addPoints() (delta bool) {
	if d.hists > 0 {
		return true
	}
	delta = d.kind == count || d.kind == rate && d.interval > 0
	length := int64(math.Round(d.interval * 1000))
	for _, p := range d.points {
		if d.kind == rate && delta {
			p.v *= d.interval
		}
		start := int64(0)
		if delta && length > 0 {
			start = p.t - length
		}
		d.c.Started(start, p.t, p.v)
	}
	return delta
}
