package recent

import (
	"math"
	"slices"
)

// timeline is the times of series that get their samples together, as those of a target do. A
// series knows the numbers of its samples in it. Times that are there do not change, so readers
// share them.
type timeline struct {
	t      []int64 // ms, ascending
	first  uint32  // the number of t[0], modulo 2^32
	series int     // that have their times here
}

const lineBytes = 40 // of a timeline without its times

// index returns where the time of a number is; negative: it was forgotten.
func (l *timeline) index(number uint32) int { return int(int32(number - l.first)) }

// after reports whether the time of a number is after floor (ms).
func (l *timeline) after(number uint32, floor int64) bool {
	i := l.index(number)
	return i >= 0 && l.t[i] > floor
}

// find returns the index of a time, or of the first one after it.
func (l *timeline) find(t int64) (i int, ok bool) {
	if n := len(l.t); n > 0 && l.t[n-1] <= t { // as most are
		if l.t[n-1] == t {
			return n - 1, true
		}
		return n, false
	}
	return slices.BinarySearch(l.t, t)
}

// timelines are the timelines of all chains, by number; that of the first is 1.
type timelines struct {
	all    []timeline
	free   []uint32   // numbers of those that no series has
	recent [64]uint32 // the one that got a time last, by the time modulo their number; 0: none
	times  int64      // room for times, in all
	same   step       // that the last series took
}

// step is from the number of a sample in a timeline to the next number, of time t (ms).
type step struct {
	line, at uint32
	t        int64
}

func (x *timelines) at(number uint32) *timeline { return &x.all[number-1] }

// bytes is the memory of all.
func (x *timelines) bytes() int64 {
	const timeBytes = 8
	return lineBytes*int64(cap(x.all)) + timeBytes*x.times
}

// set changes the times of a timeline.
func (x *timelines) set(l *timeline, t []int64) {
	x.times += int64(cap(t) - cap(l.t))
	l.t = t
}

// latest returns the timeline that got a time last, if it is one with this time. Series that come
// after one another mostly get their samples together.
func (x *timelines) latest(t int64) (number uint32, i int, ok bool) {
	if number = x.recent[uint64(t)%uint64(len(x.recent))]; number == 0 {
		return 0, 0, false
	}
	i, ok = x.at(number).find(t)
	return number, i, ok
}

// extend adds a time (ms) after all others of a timeline. Where it needs memory, it frees those up
// to floor (ms).
func (x *timelines) extend(number uint32, t, floor int64) {
	l := x.at(number)
	if len(l.t) == cap(l.t) {
		n, found := l.find(floor)
		if found {
			n++
		}
		left := l.t[n:]
		x.set(l, append(make([]int64, 0, len(left)+max(4, len(left)/4)), left...))
		l.first += uint32(n)
	}
	l.t = append(l.t, t)
	x.recent[uint64(t)%uint64(len(x.recent))] = number
}

// begin returns the number of a new timeline, without times.
func (x *timelines) begin() uint32 {
	if n := len(x.free); n > 0 {
		number := x.free[n-1]
		x.free = x.free[:n-1]
		return number
	}
	x.all = append(x.all, timeline{})
	return uint32(len(x.all))
}

// leave notes that a series does not have its times in a timeline any more.
func (x *timelines) leave(number uint32) {
	l := x.at(number)
	if l.series--; l.series == 0 {
		x.set(l, nil)
		*l = timeline{}
		x.same = step{}
		x.free = append(x.free, number)
	}
}

// join finds the number of the first sample of a series, of time t (ms): in the timeline of others
// that have it, or in a new one.
func (c *nodes) join(s *chain, t, floor int64) {
	number, i, ok := c.lines.latest(t)
	if !ok {
		number = c.lines.begin()
		c.lines.extend(number, t, floor)
		i = len(c.lines.at(number).t) - 1
	}
	l := c.lines.at(number)
	l.series++
	s.line, s.at = number, l.first+uint32(i)
}

// move gives a series that does not get its samples together with others of its timeline another
// one: that which has its times after floor (ms) and the next one, or a new one.
func (c *nodes) move(s *chain, next, floor int64) {
	shared, own, v := c.read(s, floor+1, math.MaxInt64, nil, nil)
	if own != nil {
		shared = own
	}
	t := append(slices.Clone(shared), next)
	had := s.had
	c.clear(s)
	number, _, ok := c.lines.latest(next)
	if ok {
		l := c.lines.at(number)
		i, found := l.find(t[0])
		ok = found && i+len(t) <= len(l.t) && slices.Equal(l.t[i:i+len(t)], t)
	}
	if !ok {
		number = c.lines.begin()
		c.lines.set(c.lines.at(number), t[:len(t)-1:len(t)-1])
		c.lines.extend(number, next, floor)
	}
	l := c.lines.at(number)
	l.series++
	i, _ := l.find(t[0])
	s.line, s.at, s.v = number, l.first+uint32(i), v[0]
	for k := 1; k < len(v); k++ {
		c.push(s, s.at+1, v[k], floor)
	}
	s.had = had
}
