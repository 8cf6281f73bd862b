package merge

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// streams are samples of many series in little memory: two to three bytes for most samples that
// change, and hardly any for those that do not. Each series has a stream of bytes in blocks of an
// arena. A sample is
//
//	control   1 byte: its form in the lower seven bits; sameStep: the time needs no bytes
//	time      varint, zigzag: the step from the time before, minus the step before that
//	value     as many bytes as the form has, the least first
//
// Forms of a value, after the one before it in the stream (0 for the first):
//
//	0          the same bits
//	1 … 6      both are whole numbers: the difference, zigzag, in so many bytes
//	7 … 12     both are thousandths: the difference of those, the same
//	16 … 79    the bits that differ: 8 · (zero bytes at their end) + bytes that follow, less 1
//	80 … 127   so many samples, less 79, of the same step and the same bits; with sameStep
//
// The last samples of the latter kind are only counted in the tail.
type streams struct {
	arena
	tails []tail
	base  int64 // ms, near the times of all samples
}

const (
	sameStep       = 0x80
	maxDiffBytes   = 6 // of a difference between numbers
	wholeForm      = 0
	milliForm      = wholeForm + maxDiffBytes
	xorForm        = 16
	runForm        = 79
	maxRun         = 0x7f - runForm
	valueBytes     = 8
	maxSampleBytes = 2 + binary.MaxVarintLen64 + valueBytes // a run before it included
	maxSamples     = math.MaxUint32 / 2                     // of a stream
	milli          = 1000
)

// tail is the end of a stream, where the next sample goes.
type tail struct {
	first, last uint32 // addresses of blocks
	n           uint32 // samples
	used        uint16 // bytes of the last block
	size        uint8  // of the last block, in units of unitBytes
	run         uint8  // samples like the last one that are not in the blocks
	t, step     int64  // of the last sample: its time, and how long after the one before it, ms
	v           uint64 // its value's bits
}

// open begins a stream and returns its number.
func (s *streams) open() uint32 {
	b := s.block(minBlockBytes)
	s.tails = append(s.tails, tail{first: b, last: b, used: linkBytes, size: minBlockBytes / unitBytes, t: s.base})
	return uint32(len(s.tails) - 1)
}

// append adds samples to a stream.
func (s *streams) append(stream uint32, ts []int64, vals []float64) {
	x := &s.tails[stream]
	for i, t := range ts {
		v, step := math.Float64bits(vals[i]), t-x.t
		switch {
		case v != x.v || step != x.step:
			s.add(x, step, v)
		case x.run == maxRun:
			s.add(x, step, v)
			x.run = 1
		default:
			x.run++
		}
		x.t = t
	}
	x.n += uint32(len(ts))
}

// add writes the run of a stream and, unless it goes on, the sample after it.
func (s *streams) add(x *tail, step int64, v uint64) {
	var other [maxSampleBytes]byte
	buf, inPlace := other[:], false
	if room := s.from(x.last)[x.used : int(x.size)*unitBytes]; len(room) >= maxSampleBytes {
		buf, inPlace = room, true
	}
	n := 0
	if x.run > 0 {
		buf[0] = sameStep | (runForm + x.run)
		x.run, n = 0, 1
	}
	if step != x.step || v != x.v {
		at := n
		n++
		buf[at] = sameStep
		if step != x.step {
			buf[at] = 0
			n += binary.PutVarint(buf[n:], step-x.step)
		}
		form, rest, size := encode(x.v, v)
		buf[at] |= form
		binary.LittleEndian.PutUint64(buf[n:], rest)
		n += size
		x.step, x.v = step, v
	}
	if inPlace {
		x.used += uint16(n)
	} else {
		s.write(x, buf[:n])
	}
}

// encode returns the form of a value after another one, and its size bytes, the first one lowest in
// rest.
func encode(before, v uint64) (form byte, rest uint64, size int) {
	if before == v {
		return 0, 0, 0
	}
	form = wholeForm
	i, ok := whole(before)
	j, also := whole(v)
	if !ok || !also {
		form = milliForm
		if i, ok = thousandths(before); ok {
			j, ok = thousandths(v)
		}
	}
	if ok {
		d := j - i
		z := uint64(d)<<1 ^ uint64(d>>63)
		if size = (bits.Len64(z) + 7) / 8; size <= maxDiffBytes {
			return form + byte(size), z, size
		}
	}
	x := before ^ v
	low := bits.TrailingZeros64(x) / 8
	x >>= 8 * low
	size = (bits.Len64(x) + 7) / 8
	return byte(xorForm + 8*low + size - 1), x, size
}

// most bounds the integers of values: their differences are exact.
const most = 1 << 50

// whole returns the integer that a value of some bits is, if it is one.
func whole(v uint64) (int64, bool) {
	x := math.Float64frombits(v)
	if !(x > -most && x < most) {
		return 0, false
	}
	i := int64(x)
	return i, math.Float64bits(float64(i)) == v
}

// thousandths returns a value of some bits in units of 1/1000, if it is exactly that quotient.
func thousandths(v uint64) (int64, bool) {
	x := math.Float64frombits(v) * milli
	if !(x > -most && x < most) {
		return 0, false
	}
	i := int64(math.RoundToEven(x))
	return i, math.Float64bits(float64(i)/milli) == v
}

// read appends the samples of a stream. buf is memory to use, which it returns.
func (s *streams) read(stream uint32, ts []int64, vals []float64, buf []byte) ([]int64, []float64, []byte) {
	x := &s.tails[stream]
	buf = append(s.bytes(buf[:0], x), make([]byte, valueBytes)...) // so that each value can be read as eight bytes
	at, n := len(ts), int(x.n)
	ts, vals = slices.Grow(ts, n)[:at+n], slices.Grow(vals, n)[:at+n]
	t, step, v := s.base, int64(0), uint64(0)
	same := func(k int) { // more samples with the same step and value
		for f := math.Float64frombits(v); k > 0; k-- {
			t += step
			ts[at], vals[at] = t, f
			at++
		}
	}
	for b, end := buf, len(ts)-int(x.run); at < end; {
		c := b[0]
		b = b[1:]
		form := int(c &^ sameStep)
		if form > runForm {
			same(form - runForm)
			continue
		}
		if c&sameStep == 0 {
			d, n := binary.Varint(b)
			b, step = b[n:], step+d
		}
		size := form
		if form >= xorForm {
			size = (form-xorForm)%8 + 1
		} else if form > milliForm {
			size = form - milliForm
		}
		rest := binary.LittleEndian.Uint64(b) & (1<<uint(8*size) - 1)
		b = b[size:]
		switch d := int64(rest>>1) ^ -int64(rest&1); {
		case form == 0:
		case form >= xorForm:
			v ^= rest << (8 * ((form - xorForm) / 8))
		case form > milliForm:
			v = math.Float64bits(float64(int64(math.RoundToEven(math.Float64frombits(v)*milli))+d) / milli)
		default:
			v = math.Float64bits(float64(int64(math.Float64frombits(v)) + d))
		}
		same(1)
	}
	same(int(x.run))
	return ts, vals, buf
}
