package head

import (
	"encoding/binary"
	"math"
)

const (
	nodeBytes = 56  // of samples in a node
	slabNodes = 512 // nodes in a slab
)

// node holds encoded samples of one series. It has no pointers, so that the garbage collector need
// not look at it.
type node struct {
	next uint32 // the number of the next one, 0: none
	n    uint16 // samples
	used uint8  // bytes
	run  bool   // the last control byte is that of a run
	data [nodeBytes]byte
}

// chain is the nodes of one series, and what its next sample is encoded after.
type chain struct {
	first, tail uint32 // numbers of nodes, 0: none
	had, gone   uint32 // samples so far, and those of them that are forgotten; modulo 2^32
	last
}

// nodes are the nodes of all chains.
type nodes struct {
	slabs []*[slabNodes]node
	n     uint32 // nodes that were ever taken; the number of the first is 1
	free  uint32 // the first of those that are free; each is linked to the next
	held  int64  // nodes that are not free
}

// bytes is the memory of all.
func (c *nodes) bytes() int64 { return int64(len(c.slabs)) * slabNodes * (nodeBytes + 8) }

// at returns the node of a number.
func (c *nodes) at(number uint32) *node {
	return &c.slabs[(number-1)/slabNodes][(number-1)%slabNodes]
}

// take returns the number of a new node.
func (c *nodes) take() uint32 {
	c.held++
	if number := c.free; number != 0 {
		x := c.at(number)
		c.free = x.next
		*x = node{}
		return number
	}
	if int(c.n) == len(c.slabs)*slabNodes {
		c.slabs = append(c.slabs, new([slabNodes]node))
	}
	c.n++
	return c.n
}

// append adds a sample of a series, which is later than its last one. Before it takes a node, it
// frees those of the series that have no sample after floor (ms).
func (c *nodes) append(s *chain, t int64, v float64, floor int64) {
	if s.tail != 0 && c.push(s, t, v) {
		return
	}
	c.forget(s, floor)
	s.had++
	if s.tail == 0 {
		s.tail = c.take()
		s.first = s.tail
		s.begin(c.at(s.tail), t, v)
		return
	}
	number := c.take()
	c.at(s.tail).next = number
	s.tail = number
	s.begin(c.at(number), t, v)
}

// push adds a sample of a series to its last node, if there is room.
func (c *nodes) push(s *chain, t int64, v float64) bool {
	x := c.at(s.tail)
	if t-s.t == s.apart && math.Float64bits(v) == math.Float64bits(s.v) {
		if at := x.used - 1; x.run && x.data[at] < maxRun {
			x.data[at]++
		} else if x.used < nodeBytes {
			x.data[x.used], x.run = 0, true
			x.used++
		} else {
			return false
		}
		s.t = t
	} else {
		var buf [maxBytes]byte
		n := s.encode(&buf, t, v)
		if int(x.used)+n > nodeBytes {
			return false
		}
		copy(x.data[x.used:], buf[:n])
		x.used, x.run = x.used+uint8(n), false
		s.t, s.apart, s.v = t, t-s.t, v
	}
	s.had++
	x.n++
	return true
}

// begin makes a sample the first one of a node.
func (s *chain) begin(x *node, t int64, v float64) {
	binary.LittleEndian.PutUint64(x.data[:], uint64(t))
	binary.LittleEndian.PutUint64(x.data[8:], math.Float64bits(v))
	x.n, x.used, x.run = 1, firstBytes, false
	s.last = last{t: t, v: v}
}

// forget frees the nodes of a series that have no sample after floor (ms).
func (c *nodes) forget(s *chain, floor int64) {
	for s.first != 0 {
		x := c.at(s.first)
		if s.first == s.tail {
			if s.t > floor {
				return
			}
		} else if firstOf(c.at(x.next).data[:]).t-1 > floor {
			return
		}
		next := x.next
		s.gone += uint32(x.n)
		x.next, c.free = c.free, s.first
		c.held--
		if s.first = next; next == 0 {
			s.tail = 0
		}
	}
}

// read appends the samples of a series in [mint, maxt] (ms) to t and v.
func (c *nodes) read(s *chain, mint, maxt int64, t []int64, v []float64) ([]int64, []float64) {
	if s.t < mint {
		return t, v
	}
	for number := s.first; number != 0; {
		x := c.at(number)
		if number = x.next; number != 0 && firstOf(c.at(number).data[:]).t <= mint {
			continue
		}
		d := newDecoder(x.data[:x.used])
		for _, more := d.seek(mint); more; more = d.next() {
			if d.t > maxt {
				return t, v
			}
			t, v = append(t, d.t), append(v, d.v)
		}
	}
	return t, v
}

// has reports whether a series has a sample.
func (c *nodes) has(s *chain, t int64, v float64) bool {
	ts, vs := c.read(s, t, t, nil, nil)
	return len(ts) == 1 && math.Float64bits(vs[0]) == math.Float64bits(v)
}

// manySamples is the number of samples of a node from which count does not count all of them for
// some.
const manySamples = 128

// count returns about how many samples read appends, and no fewer: those of the nodes that it reads.
func (c *nodes) count(s *chain, mint, maxt int64) (n int) {
	if s.t < mint {
		return 0
	}
	for number := s.first; number != 0; {
		x := c.at(number)
		if firstOf(x.data[:]).t > maxt {
			break
		}
		if number = x.next; number != 0 && firstOf(c.at(number).data[:]).t <= mint {
			continue
		}
		n += int(x.n)
		if x.n > manySamples {
			d := newDecoder(x.data[:x.used])
			passed, _ := d.seek(mint)
			n -= int(passed)
		}
	}
	return n
}

// slice appends the n samples of a series before the one of a number, which counts as had does.
// They must be there.
func (c *nodes) slice(s *chain, end, n uint32, t []int64, v []float64) ([]int64, []float64) {
	skip := end - n - s.gone
	for number := s.first; n > 0; {
		x := c.at(number)
		number = x.next
		if skip >= uint32(x.n) {
			skip -= uint32(x.n)
			continue
		}
		d := newDecoder(x.data[:x.used])
		d.skip(skip)
		skip = 0
		for more := true; more && n > 0; more = d.next() {
			t, v = append(t, d.t), append(v, d.v)
			n--
			for ; d.run > 0 && n > 0; n-- { // the rest of a run
				d.run--
				d.t += d.apart
				t, v = append(t, d.t), append(v, d.v)
			}
		}
	}
	return t, v
}
