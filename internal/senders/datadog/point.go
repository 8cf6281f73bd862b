package datadog

import (
	"fmt"
	"math"
	"slices"
)

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
