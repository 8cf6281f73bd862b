package head

import "math"

// keptSamples and keptSeries bound the memory of a room that is used again: one of a large query
// would stay while nobody needs so much.
const (
	keptSamples = 64 << 10
	keptSeries  = 4 << 10
)

// Room is memory for what Select returns. The zero value is ready.
type Room struct {
	t      []int64
	v      []float64
	series []Series
}

// Reset takes all memory back. What Select has returned must not be used any more: it has no
// labels, and its samples are no numbers, at the beginning of time unless their times are those of
// the head, so that whoever does it nevertheless is found out.
func (r *Room) Reset() {
	if cap(r.t) > keptSamples || cap(r.v) > keptSamples || cap(r.series) > keptSeries {
		*r = Room{}
		return
	}
	for i := range r.t {
		r.t[i] = math.MinInt64
	}
	for i := range r.v {
		r.v[i] = math.NaN()
	}
	clear(r.series)
	r.t, r.v, r.series = r.t[:0], r.v[:0], r.series[:0]
}
