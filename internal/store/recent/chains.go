package recent

import (
	"iter"
	"math"
	"slices"

	"github.com/promlake/promlake/internal/format/series"
)

const (
	nodeBytes  = 55  // of items in a node
	slabNodes  = 128 // nodes in a slab
	chainBytes = 32  // of a chain
	bufBytes   = 7   // of items in a chain
)

// node holds items of one series. It has no pointers, so that the garbage collector need not look at
// it.
type node struct {
	prev uint32 // the number of the one with older items, 0: none
	at   uint32 // the number of the sample that is before its last item is read
	used uint8  // bytes
	data [nodeBytes]byte
}

// chain is the samples of one series: the newest one, and items that lead from there to older ones,
// those of the newest here and the others in nodes. Most constants have no node.
type chain struct {
	tail uint32 // the number of the newest node, 0: none
	line uint32 // the number of the timeline, 0: there are no samples
	at   uint32 // the number of the newest sample in the timeline
	had  uint32 // samples so far, modulo 2^32
	v    float64
	buf  [bufBytes]byte // items
	used uint8          // bytes
}

// chains are the chains of a table by ref, in arrays that stay where they are.
type chains struct {
	arrays []*[arrayChains]chain
}

const arrayChains = 256

func (c *chains) at(ref series.Ref) *chain {
	return &c.arrays[ref/arrayChains][ref%arrayChains]
}

// grow makes room for n chains.
func (c *chains) grow(n int) {
	for c.len() < n {
		c.arrays = append(c.arrays, new([arrayChains]chain))
	}
}

// len returns the number of chains that there is room for.
func (c *chains) len() int { return len(c.arrays) * arrayChains }

// clear empties all chains.
func (c *chains) clear() {
	for _, a := range c.arrays {
		*a = [arrayChains]chain{}
	}
}

// all yields the chains.
func (c *chains) all() iter.Seq2[series.Ref, *chain] {
	return func(yield func(series.Ref, *chain) bool) {
		for i, a := range c.arrays {
			for k := range a {
				if !yield(series.Ref(i*arrayChains+k), &a[k]) {
					return
				}
			}
		}
	}
}

// bytes is the memory of all.
func (c *chains) bytes() int64 {
	const pointer = 8
	return chainBytes*int64(c.len()) + pointer*int64(cap(c.arrays))
}

// nodes are the nodes and the times of all chains.
type nodes struct {
	slabs []*[slabNodes]node
	n     uint32 // nodes that were ever taken; the number of the first is 1
	free  uint32 // the first of those that are free; each is linked to the next
	held  int64  // nodes that are not free
	lines timelines
}

// bytes is the memory of all.
func (c *nodes) bytes() int64 {
	return int64(len(c.slabs))*slabNodes*(nodeBytes+9) + c.lines.bytes()
}

// node returns the node of a number.
func (c *nodes) node(number uint32) *node {
	return &c.slabs[(number-1)/slabNodes][(number-1)%slabNodes]
}

// take returns the number of a new node.
func (c *nodes) take() uint32 {
	c.held++
	if number := c.free; number != 0 {
		x := c.node(number)
		c.free = x.prev
		*x = node{}
		return number
	}
	if int(c.n) == len(c.slabs)*slabNodes {
		c.slabs = append(c.slabs, new([slabNodes]node))
	}
	c.n++
	return c.n
}

// give frees a node and those before it.
func (c *nodes) give(number uint32) {
	for number != 0 {
		x := c.node(number)
		number, x.prev, c.free = x.prev, c.free, number
		c.held--
	}
}

// clear forgets all samples of a series.
func (c *nodes) clear(s *chain) {
	c.give(s.tail)
	c.lines.leave(s.line)
	*s = chain{had: s.had}
}

// last returns the time (ms) of the newest sample of a series. It is math.MinInt64 if the series
// has no sample, or if its newest samples may have been dropped.
func (c *nodes) last(s *chain) int64 {
	if s.line == 0 {
		return math.MinInt64
	}
	l := c.lines.at(s.line)
	if i := l.index(s.at); i >= 0 {
		return l.t[i]
	}
	return math.MinInt64
}

// append adds a sample of a series, which is later than its last one. Before it takes a node, it
// frees those of the series that have no sample after floor (ms).
func (c *nodes) append(s *chain, t int64, v float64, floor int64) {
	if s.line != 0 {
		if number, ok := c.number(s, t, floor); ok {
			c.push(s, number, v, floor)
			return
		}
	}
	c.join(s, t, floor)
	s.v = v
	s.had++
}

// number returns the number of the next sample of a series, at t (ms). It reports false if the
// series has no samples any more.
func (c *nodes) number(s *chain, t, floor int64) (number uint32, ok bool) {
	taken := step{s.line, s.at, t}
	if taken == c.lines.same { // as others of the target did before
		return s.at + 1, true
	}
	l := c.lines.at(s.line)
	next := l.index(s.at) + 1
	if next > 0 && next == len(l.t) {
		c.lines.extend(s.line, t, floor)
		next = l.index(s.at) + 1
	}
	if next >= 0 && next < len(l.t) && l.t[next] == t {
		c.lines.same = taken
		return s.at + 1, true
	}
	if c.forget(s, floor); s.line == 0 {
		return 0, false
	}
	i, found := l.find(t)
	apart := s.used > 0 && s.buf[s.used-1]&(single|gapBit) == single|gapBit // for the second time
	if !found && i < len(l.t) || apart && i != next {
		c.move(s, t, floor)
		return s.at + 1, true
	}
	if !found {
		c.lines.extend(s.line, t, floor)
		i = len(l.t) - 1
	}
	return l.first + uint32(i), true
}

// push adds the sample of a number.
func (c *nodes) push(s *chain, number uint32, v float64, floor int64) {
	gap := number - s.at - 1
	s.had++
	if gap == 0 && math.Float64bits(v) == math.Float64bits(s.v) && s.used > 0 && s.buf[s.used-1] < maxRun {
		s.buf[s.used-1]++
		s.at = number
		return
	}
	var item [maxBytes]byte
	n := encode(&item, gap, s.v, v)
	if int(s.used)+n > bufBytes {
		c.spill(s, n, floor)
	}
	if int(s.used)+n <= bufBytes {
		copy(s.buf[s.used:], item[:n])
		s.used += uint8(n)
		s.at = number
	} else {
		s.at = number
		c.write(s, item[:n], floor)
	}
	s.v = v
}

// spill makes room in the chain for n bytes. If there are more than it has room for, it is empty.
func (c *nodes) spill(s *chain, n int, floor int64) {
	if s.tail == 0 {
		c.trim(s, floor)
	}
	if s.used > 0 && int(s.used)+n > bufBytes {
		c.write(s, s.buf[:s.used], floor)
		s.used = 0
	}
}

// trim removes items from the chain of a series without nodes that lead to samples up to floor (ms)
// only.
func (c *nodes) trim(s *chain, floor int64) {
	l, d := c.lines.at(s.line), c.newest(s)
	for l.after(d.at, floor) {
		if len(d.items) == 0 {
			return
		}
		d.older()
		d.at, d.run = d.at-d.run, 0
	}
	s.used = uint8(copy(s.buf[:], s.buf[len(d.items):s.used]))
}

// write adds items to the last node, or to a new one.
func (c *nodes) write(s *chain, items []byte, floor int64) {
	if s.tail == 0 || int(c.node(s.tail).used)+len(items) > nodeBytes {
		c.old(s, floor)
		number := c.take()
		c.node(number).prev = s.tail
		s.tail = number
	}
	x := c.node(s.tail)
	x.used += uint8(copy(x.data[x.used:], items))
	x.at = s.at
}

// forget frees the samples of a series up to floor (ms).
func (c *nodes) forget(s *chain, floor int64) {
	switch {
	case s.line == 0:
	case !c.lines.at(s.line).after(s.at, floor):
		c.clear(s)
	default:
		c.old(s, floor)
	}
}

// old frees the nodes of a series whose items lead to samples up to floor (ms) only.
func (c *nodes) old(s *chain, floor int64) {
	l := c.lines.at(s.line)
	for link := &s.tail; *link != 0; {
		x := c.node(*link)
		if !l.after(x.at, floor) {
			c.give(*link)
			*link = 0
			return
		}
		link = &x.prev
	}
}

// span returns where in the timeline of a series its samples in [mint, maxt] (ms) are: from lo on,
// and before hi.
func (c *nodes) span(s *chain, mint, maxt int64) (l *timeline, lo, hi int) {
	if s.line == 0 {
		return nil, 0, 0
	}
	l = c.lines.at(s.line)
	hi = l.index(s.at) + 1
	if hi <= 0 || l.t[hi-1] < mint {
		return nil, 0, 0
	}
	if l.t[hi-1] > maxt {
		n, found := l.find(maxt)
		if found {
			n++
		}
		hi = n
	}
	lo, _ = slices.BinarySearch(l.t[:hi], mint)
	return l, lo, hi
}

// read appends the values of a series in [mint, maxt] (ms) to v, and returns their times. These are
// shared with other series, or, if samples are missing between them, appended to t.
func (c *nodes) read(s *chain, mint, maxt int64, t []int64, v []float64) (shared, own []int64, values []float64) {
	l, lo, hi := c.span(s, mint, maxt)
	if lo == hi {
		return nil, t, v
	}
	d := c.newest(s)
	if !d.seek(l.first+uint32(hi)-1) || l.index(d.at) < lo {
		return nil, t, v
	}
	hi = l.index(d.at) + 1
	from := len(v)
	v = slices.Grow(v, hi-lo)[:from+hi-lo]
	at := hi
	for {
		at--
		v[from+at-lo] = d.v
		if !d.older() || l.index(d.at) < lo {
			break
		}
		if l.index(d.at) != at-1 {
			t, v = c.gaps(s, l, lo, hi, t, v[:from])
			return nil, t, v
		}
	}
	if at > lo { // it began later
		v = append(v[:from], v[from+at-lo:]...)
	}
	return l.t[at:hi:hi], t, v
}

// gaps is read for a series that lacks times between two indexes of its timeline.
func (c *nodes) gaps(s *chain, l *timeline, lo, hi int, t []int64, v []float64) ([]int64, []float64) {
	d := c.newest(s)
	d.seek(l.first + uint32(hi) - 1)
	begin, from := len(t), len(v)
	for more := true; more && l.index(d.at) >= lo; more = d.older() {
		t, v = append(t, l.t[l.index(d.at)]), append(v, d.v)
	}
	slices.Reverse(t[begin:])
	slices.Reverse(v[from:])
	return t, v
}

// has reports whether a series has a sample.
func (c *nodes) has(s *chain, t int64, v float64) bool {
	_, _, got := c.read(s, t, t, nil, nil)
	return len(got) == 1 && math.Float64bits(got[0]) == math.Float64bits(v)
}

// count returns an upper bound of the number of samples that read appends.
func (c *nodes) count(s *chain, mint, maxt int64) int {
	_, lo, hi := c.span(s, mint, maxt)
	return hi - lo
}

// slice appends the n samples of a series before the one of a number, which counts as had does.
// They must be there.
func (c *nodes) slice(s *chain, end, n uint32, t []int64, v []float64) ([]int64, []float64) {
	l, d := c.lines.at(s.line), c.newest(s)
	d.skip(s.had - end)
	begin, from := len(t), len(v)
	t, v = slices.Grow(t, int(n))[:begin+int(n)], slices.Grow(v, int(n))[:from+int(n)]
	for i := int(n) - 1; i >= 0; i-- {
		t[begin+i], v[from+i] = l.t[l.index(d.at)], d.v
		d.older()
	}
	return t, v
}
