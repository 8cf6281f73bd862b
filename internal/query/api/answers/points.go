package answers

import (
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/promql"
)

// stamps formats the points of series. It keeps the text of each time, because most series have the
// same times as the one before, and the panels of a dashboard those of each other.
type stamps struct {
	times []int64 // ascending
	text  []byte  // of a point at each of times, up to its value
	ends  []int   // of the texts in text
}

// learn replaces the times by those of points.
func (s *stamps) learn(points []promql.FPoint) {
	s.times, s.text, s.ends = s.times[:0], s.text[:0], s.ends[:0]
	begin := 0 // of the text before
	for i, p := range points {
		end, ok := len(s.text), false
		if i > 0 {
			s.text, ok = appendLater(s.text, s.text[begin:], s.times[i-1], p.T)
		}
		if !ok {
			s.text = appendTime(s.text[:end], p.T)
		}
		s.times, s.ends, begin = append(s.times, p.T), append(s.ends, len(s.text)), end
	}
}

// knows reports whether the times are likely to have those of points among them: they have as many
// from the first to the last.
func (s *stamps) knows(points []promql.FPoint) bool {
	if len(points) == 0 {
		return false
	}
	k, ok := slices.BinarySearch(s.times, points[0].T)
	last := k + len(points) - 1
	return ok && last < len(s.times) && s.times[last] == points[len(points)-1].T
}

// at returns the text of the time with index k.
func (s *stamps) at(k int) []byte {
	if k == 0 {
		return s.text[:s.ends[0]]
	}
	return s.text[s.ends[k-1]:s.ends[k]]
}

// values appends the points of a series.
func (s *stamps) values(out []byte, points []promql.FPoint) []byte {
	if len(points) == 0 {
		return out
	}
	if len(points) > len(s.times) {
		s.learn(points)
	}
	out = append(out, `,"values":[`...)
	k, short := 0, true
	for i, p := range points {
		if i > 0 {
			out = append(out, ',')
		}
		for k < len(s.times) && s.times[k] < p.T {
			k++
		}
		if k < len(s.times) && s.times[k] == p.T {
			out = append(out, s.at(k)...)
		} else {
			out = appendTime(out, p.T)
		}
		if short {
			out, short = appendShort(out, p.F)
		}
		if !short {
			out = appendFloat(out, p.F)
		}
		out = append(out, `"]`...)
	}
	return append(out, ']')
}

// appendTime appends a point at t (ms), up to its value.
// Source: MarshalTimestamp in upstream's util/jsonutil.
func appendTime(out []byte, t int64) []byte {
	out = append(out, '[')
	if t < 0 {
		out = append(out, '-')
		t = -t
	}
	out = strconv.AppendInt(out, t/1000, 10)
	if ms := t % 1000; ms != 0 {
		out = append(out, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	return append(out, `,"`...)
}

// appendLater appends the point of a time, given the text of an earlier one, by adding to its
// digits. It fails unless the times are positive and whole seconds apart, and have as many digits.
func appendLater(out, text []byte, before, t int64) ([]byte, bool) {
	more := t - before
	if before < 1000 || more <= 0 || more%1000 != 0 {
		return out, false
	}
	out = append(out, text...)
	at := len(out) - len(`,"`) - 1
	if before%1000 != 0 {
		at -= len(".000")
	}
	for more /= 1000; more > 0; at-- {
		if out[at] == '[' {
			return out, false
		}
		more += int64(out[at] - '0')
		out[at] = '0' + byte(more%10)
		more /= 10
	}
	return out, true
}

// appendShort appends the text of a number that is an integer or has at most three digits after its
// point, as many samples have. Of at most 15 digits in all, no other decimal is the same double, so
// there is no shorter one. It reports whether the number is one; otherwise it may be a longer one.
func appendShort(out []byte, f float64) ([]byte, bool) {
	const exact = 1 << 53 // integers below it are exact
	if n := int64(f); float64(n) == f && n != 0 && n > -exact && n < exact {
		return strconv.AppendInt(out, n, 10), true
	}
	if f == 0 {
		return appendFloat(out, f), true // it has a sign
	}
	x := math.Abs(f) * 1000
	if !(x < 1e15) {
		return out, false
	}
	n := uint64(x + 0.5)
	if n == 0 || math.Abs(x-float64(n)) > 1e-3 || float64(n)/1000 != math.Abs(f) {
		return out, false
	}
	if f < 0 {
		out = append(out, '-')
	}
	out = strconv.AppendUint(out, n/1000, 10)
	out = append(out, '.', byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
	for out[len(out)-1] == '0' {
		out = out[:len(out)-1]
	}
	return out, true
}

// appendFloat appends the text of a value.
// Source: MarshalFloat in upstream's util/jsonutil.
func appendFloat(out []byte, f float64) []byte {
	const exact = 1 << 53 // integers below it are exact
	if n := int64(f); float64(n) == f && n != 0 && n > -exact && n < exact {
		return strconv.AppendInt(out, n, 10)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(out, f, format, -1, 64)
}
