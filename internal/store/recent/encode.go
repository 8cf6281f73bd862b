package recent

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The samples of a series are read from the newest one to older ones: an item leads from a sample to
// the one before it, or over a run of samples, so nothing but the newest sample is there as it is,
// and what is too old can be forgotten. The last byte of an item is its control byte, and items are
// in the order of time:
//
//	0nnnnnnn  n+1 samples, each with the value of the one after it, and the time before that of it
//	1gvvvvvv  one sample
//
// Times are those of a timeline. If g is set, some of its times are missing between the two samples.
// Their number is before the control byte: a byte, or four bytes and then 255. vvvvvv is the
// value, in bytes before those, little-endian:
//
//	0      equal
//	1–8    a whole number, in so many bytes the difference to it of the value after it, which is one as
//	       well
//	9–12   the same of hundredths, in 1 to 4 bytes
//	13–16  the same of billionths, which measured durations are in
//	17–24  1 to 8 bytes, the low ones of the exclusive or of the bits of both values
//	25–32  the same, the high ones
const (
	single     = 0x80
	gapBit     = 0x40
	kindMask   = 0x3f
	maxRun     = 0x7f // n of the longest run
	maxGap     = 0xff // from here on, a gap takes four bytes more
	valueEqual = 0
	wholeFrom  = 1
	centsFrom  = 9
	nanosFrom  = 13
	lowFrom    = 17
	highFrom   = 25

	maxBytes = 8 + 4 + 1 + 1
)

// encode encodes in buf the item that leads from value v to before. It returns its length.
func encode(buf *[maxBytes]byte, gap uint32, before, v float64) (n int) {
	kind, word, n := difference(before, v)
	if n == 0 && gap == 0 {
		buf[0] = 0
		return 1
	}
	binary.LittleEndian.PutUint64(buf[:], word)
	control := single | kind
	if gap > 0 {
		control |= gapBit
		if gap >= maxGap {
			binary.LittleEndian.PutUint32(buf[n:], gap)
			n += 4
		}
		buf[n] = byte(min(gap, maxGap))
		n++
	}
	buf[n] = control
	return n + 1
}

// difference returns how a value is encoded before another one: the kind, and the low bytes of a
// word.
func difference(before, v float64) (kind byte, word uint64, width int) {
	x := math.Float64bits(before) ^ math.Float64bits(v)
	if x == 0 {
		return valueEqual, 0, 0
	}
	low, high := (bits.Len64(x)+7)/8, 8-bits.TrailingZeros64(x)/8
	if low <= high {
		kind, word, width = lowFrom+byte(low)-1, x, low
	} else {
		kind, word, width = highFrom+byte(high)-1, x>>(8*(8-high)), high
	}
	shorter := func(from byte, most int, a, b int64) {
		if n := widthOf(b - a); n <= min(width, most) {
			kind, word, width = from+byte(n)-1, uint64(b-a), n
		}
	}
	if a, ok := whole(before); ok {
		if b, ok := whole(v); ok {
			shorter(wholeFrom, 8, a, b)
			return kind, word, width
		}
	}
	if a, ok := parts(before, cents); ok {
		if b, ok := parts(v, cents); ok {
			shorter(centsFrom, nanosFrom-centsFrom, a, b)
			return kind, word, width
		}
	}
	if a, ok := parts(before, nanos); ok {
		if b, ok := parts(v, nanos); ok {
			shorter(nanosFrom, lowFrom-nanosFrom, a, b)
		}
	}
	return kind, word, width
}

// maxWhole bounds the numbers that are encoded as integers, so that no difference overflows, and all
// are exact.
const maxWhole = 1 << 53

// whole returns a value as an integer, if it is one: not a negative zero.
func whole(v float64) (int64, bool) {
	if !(math.Abs(v) < maxWhole) {
		return 0, false
	}
	i := int64(v)
	return i, math.Float64bits(float64(i)) == math.Float64bits(v)
}

// Parts of one.
const (
	cents = 1e2
	nanos = 1e9
)

// parts returns a value as an integer number of parts of one, if it is the nearest value to one.
func parts(v, of float64) (int64, bool) {
	if !(math.Abs(v) < maxWhole/of) {
		return 0, false
	}
	i := inParts(v, of)
	return i, math.Float64bits(float64(i)/of) == math.Float64bits(v)
}

func inParts(v, of float64) int64 { return int64(math.RoundToEven(v * of)) }

// widthOf returns the bytes of a signed number.
func widthOf(d int64) int {
	return bits.Len64(uint64(d^d>>63))/8 + 1
}

// decoder reads the samples of a series from the newest one to older ones.
type decoder struct {
	at    uint32 // the number of the sample
	run   uint32 // samples that are left of a run
	v     float64
	items []byte // that are left
	prev  uint32 // the number of the node with those before
	nodes *nodes
}

// newest returns a decoder at the newest sample.
func (c *nodes) newest(s *chain) decoder {
	return decoder{at: s.at, v: s.v, items: s.buf[:s.used], prev: s.tail, nodes: c}
}

// older moves to the sample before. It reports false after the oldest one.
func (d *decoder) older() bool {
	if d.run > 0 {
		d.run--
		d.at--
		return true
	}
	if len(d.items) == 0 {
		if d.prev == 0 {
			return false
		}
		x := d.nodes.node(d.prev)
		d.items, d.prev = x.data[:x.used], x.prev
	}
	n := len(d.items) - 1
	control := d.items[n]
	d.at--
	switch {
	case control&single == 0:
		d.run = uint32(control)
	case control&gapBit != 0:
		n--
		gap := uint32(d.items[n])
		if gap == maxGap {
			n -= 4
			gap = binary.LittleEndian.Uint32(d.items[n:])
		}
		d.at -= gap
		n = d.value(control&kindMask, n)
	default:
		n = d.value(control&kindMask, n)
	}
	d.items = d.items[:n]
	return true
}

// skip moves n samples back, which must be there.
func (d *decoder) skip(n uint32) {
	for ; n > 0; n-- {
		if k := min(n-1, d.run); k > 0 { // samples of a run
			d.run, d.at, n = d.run-k, d.at-k, n-k
		}
		d.older()
	}
}

// seek moves back to the newest sample that has a number or is before it. It reports false if there
// is none.
func (d *decoder) seek(number uint32) bool {
	for int32(d.at-number) > 0 {
		if k := min(d.at-number, d.run); k > 0 { // a run may be long
			d.run, d.at = d.run-k, d.at-k
			continue
		}
		if !d.older() {
			return false
		}
	}
	return true
}

// value reads the value of a kind that ends at n, and returns where it begins.
func (d *decoder) value(kind byte, n int) int {
	word := func(width byte) (w uint64) {
		n -= int(width)
		for i := range int(width) {
			w |= uint64(d.items[n+i]) << (8 * i)
		}
		return w
	}
	signed := func(width byte) int64 {
		free := 64 - 8*int(width)
		return int64(word(width)<<free) >> free
	}
	switch {
	case kind == valueEqual:
	case kind < centsFrom:
		d.v = float64(int64(d.v) - signed(kind-wholeFrom+1))
	case kind < nanosFrom:
		d.v = float64(inParts(d.v, cents)-signed(kind-centsFrom+1)) / cents
	case kind < lowFrom:
		d.v = float64(inParts(d.v, nanos)-signed(kind-nanosFrom+1)) / nanos
	case kind < highFrom:
		d.v = math.Float64frombits(math.Float64bits(d.v) ^ word(kind-lowFrom+1))
	default:
		width := kind - highFrom + 1
		d.v = math.Float64frombits(math.Float64bits(d.v) ^ word(width)<<(8*(8-int(width))))
	}
	return n
}
