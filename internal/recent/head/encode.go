package head

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The samples of a series lie in nodes. Each node begins with the time (8 bytes) and the value (8
// bytes) of its first sample; each further sample, or run of samples, is a control byte and some
// bytes, little-endian:
//
//	0nnnnnnn  n+1 samples, each as long after the one before as that was after its predecessor (the
//	          first sample of a node counts as 0 ms after its predecessor), with an equal value
//	1ttvvvvv  one sample
//
// tt is its time: 0 the same distance as before, 1 a byte that is added to the distance, 2 four bytes,
// the new distance, 3 eight bytes, the time. vvvvv is its value:
//
//	0      equal
//	1–8    a whole number, in so many bytes its difference to the value before, which is one as well
//	9–12   the same of hundredths, in 1 to 4 bytes
//	13–20  1 to 8 bytes, the low ones of the exclusive or of the bits of both values
//	21–28  the same, the high ones
const (
	single     = 0x80
	maxRun     = 0x7f // n of the longest run
	timeShift  = 5
	timeEqual  = 0
	timeByte   = 1
	timeWord   = 2
	timeWhole  = 3
	valueEqual = 0
	wholeFrom  = 1
	centsFrom  = 9
	lowFrom    = 13
	highFrom   = 21
	valueMask  = 1<<timeShift - 1

	firstBytes = 16 // of the first sample of a node
	maxBytes   = 1 + 8 + 8
)

// last is what the next sample of a node is encoded after.
type last struct {
	t, apart int64 // ms
	v        float64
}

// append encodes a sample after another one in buf, and returns its length.
func (l *last) encode(buf *[maxBytes]byte, t int64, v float64) int {
	control, n := byte(single), 1
	apart := t - l.t
	switch more := apart - l.apart; {
	case more == 0:
	case int64(int8(more)) == more:
		control |= timeByte << timeShift
		buf[n] = byte(more)
		n++
	case int64(int32(apart)) == apart:
		control |= timeWord << timeShift
		binary.LittleEndian.PutUint32(buf[n:], uint32(apart))
		n += 4
	default:
		control |= timeWhole << timeShift
		binary.LittleEndian.PutUint64(buf[n:], uint64(t))
		n += 8
	}
	kind, word, width := difference(l.v, v)
	for i := range width {
		buf[n+i] = byte(word >> (8 * i))
	}
	buf[0] = control | kind
	return n + width
}

// difference returns how a value is encoded after another one: the kind, and the low bytes of a word.
func difference(before, v float64) (kind byte, word uint64, width int) {
	x := math.Float64bits(before) ^ math.Float64bits(v)
	if x == 0 {
		return valueEqual, 0, 0
	}
	if a, ok := whole(before); ok {
		if b, ok := whole(v); ok {
			width = widthOf(b - a)
			return wholeFrom + byte(width) - 1, uint64(b - a), width
		}
	}
	if a, ok := cents(before); ok {
		if b, ok := cents(v); ok {
			if width = widthOf(b - a); width <= lowFrom-centsFrom {
				return centsFrom + byte(width) - 1, uint64(b - a), width
			}
		}
	}
	low, high := (bits.Len64(x)+7)/8, 8-bits.TrailingZeros64(x)/8
	if low <= high {
		return lowFrom + byte(low) - 1, x, low
	}
	return highFrom + byte(high) - 1, x >> (8 * (8 - high)), high
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

// cents returns a value as an integer number of hundredths, if it is the nearest value to one.
func cents(v float64) (int64, bool) {
	if !(math.Abs(v) < maxWhole/100) {
		return 0, false
	}
	i := int64(math.Round(v * 100))
	return i, math.Float64bits(float64(i)/100) == math.Float64bits(v)
}

// widthOf returns the bytes of a signed number.
func widthOf(d int64) int {
	return bits.Len64(uint64(d^d>>63))/8 + 1
}

// decoder reads the samples of a node.
type decoder struct {
	last
	buf []byte // what is left
	run int    // samples that are left of a run
}

// newDecoder returns a decoder at the first sample.
func newDecoder(buf []byte) decoder {
	return decoder{last: firstOf(buf), buf: buf[firstBytes:]}
}

// firstOf returns the first sample of a node.
func firstOf(buf []byte) last {
	return last{t: int64(binary.LittleEndian.Uint64(buf)), v: math.Float64frombits(binary.LittleEndian.Uint64(buf[8:]))}
}

// next moves to the next sample. It reports false after the last one.
func (d *decoder) next() bool {
	if d.run > 0 {
		d.run--
		d.t += d.apart
		return true
	}
	if len(d.buf) == 0 {
		return false
	}
	control := d.buf[0]
	if control&single == 0 {
		d.run, d.buf = int(control), d.buf[1:]
		d.t += d.apart
		return true
	}
	n := 1
	switch control &^ single >> timeShift {
	case timeByte:
		d.apart += int64(int8(d.buf[n]))
		n++
	case timeWord:
		d.apart = int64(int32(binary.LittleEndian.Uint32(d.buf[n:])))
		n += 4
	case timeWhole:
		d.apart = int64(binary.LittleEndian.Uint64(d.buf[n:])) - d.t
		n += 8
	}
	d.t += d.apart
	d.buf = d.buf[n:]
	d.value(control & valueMask)
	return true
}

// skip moves n samples on, which must be there.
func (d *decoder) skip(n uint32) {
	for ; n > 0; n-- {
		if k := min(n, uint32(d.run)); k > 0 { // samples of a run
			d.run, d.t, n = d.run-int(k), d.t+int64(k)*d.apart, n-k
			if n == 0 {
				return
			}
		}
		d.next()
	}
}

// seek moves on to the first sample at t (ms) or later, and returns how many it passed. It reports
// false if there is none.
func (d *decoder) seek(t int64) (passed uint32, found bool) {
	for d.t < t {
		if d.run > 1 && d.apart > 0 { // a constant has thousands of samples in one node
			k := max(1, min(int64(d.run), (t-d.t)/d.apart))
			d.run, d.t, passed = d.run-int(k), d.t+k*d.apart, passed+uint32(k)
			continue
		}
		if !d.next() {
			return passed, false
		}
		passed++
	}
	return passed, true
}

// value reads the value of a kind.
func (d *decoder) value(kind byte) {
	word := func(width byte) (w uint64) {
		for i := range width {
			w |= uint64(d.buf[i]) << (8 * i)
		}
		d.buf = d.buf[width:]
		return w
	}
	signed := func(width byte) int64 {
		free := 64 - 8*int(width)
		return int64(word(width)<<free) >> free
	}
	switch {
	case kind == valueEqual:
	case kind < centsFrom:
		d.v = float64(int64(d.v) + signed(kind-wholeFrom+1))
	case kind < lowFrom:
		d.v = float64(int64(math.Round(d.v*100))+signed(kind-centsFrom+1)) / 100
	case kind < highFrom:
		d.v = math.Float64frombits(math.Float64bits(d.v) ^ word(kind-lowFrom+1))
	default:
		width := kind - highFrom + 1
		d.v = math.Float64frombits(math.Float64bits(d.v) ^ word(width)<<(8*(8-int(width))))
	}
}
