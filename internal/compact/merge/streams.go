package merge

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// streams are samples of many series in little memory: two to three bytes for most samples. Each
// series has a stream of bytes in blocks of an arena. A sample is
//
//	control   1 byte: its form in the lower seven bits; sameStep: the time needs no bytes
//	time      varint, zigzag: the step from the time before, minus the step before that
//	value     as many bytes as the form has, the least first
//
// Forms of a value, after the one before it in the stream (0 for the first):
//
//	0         the same bits
//	1 … 6     both are whole numbers: the difference, zigzag, in so many bytes
//	7 … 12    both are thousandths: the difference of those, the same
//	16 … 79   the bits that differ: 8 · (zero bytes at their end) + bytes that follow, less 1
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
	maxSampleBytes = 1 + binary.MaxVarintLen64 + 8
	milli          = 1000
)

// tail is the end of a stream, where the next sample goes.
type tail struct {
	first, last uint32 // addresses of blocks
	used, size  uint16 // of the last block, bytes
	n           uint32 // samples
	t, step     int64  // of the last sample: its time, and how long after the one before it, ms
	v           uint64 // its value's bits
}

// open begins a stream and returns its number.
func (s *streams) open() uint32 {
	b := s.block(minBlockBytes)
	s.tails = append(s.tails, tail{first: b, last: b, used: linkBytes, size: minBlockBytes, t: s.base})
	return uint32(len(s.tails) - 1)
}

// append adds samples to a stream.
func (s *streams) append(stream uint32, ts []int64, vals []float64) {
	x := &s.tails[stream]
	var buf [maxSampleBytes]byte
	for i, t := range ts {
		v := math.Float64bits(vals[i])
		step := t - x.t
		n := 1
		if step == x.step {
			buf[0] = sameStep
		} else {
			buf[0] = 0
			n += binary.PutVarint(buf[1:], step-x.step)
		}
		form, rest, size := encode(x.v, v)
		buf[0] |= form
		for range size {
			buf[n] = byte(rest)
			rest >>= 8
			n++
		}
		s.write(x, buf[:n])
		x.t, x.step, x.v = t, step, v
	}
	x.n += uint32(len(ts))
}

// encode returns the form of a value after another one, and its size bytes, the first one lowest in
// rest.
func encode(before, v uint64) (form byte, rest uint64, size int) {
	if before == v {
		return 0, 0, 0
	}
	a, b := math.Float64frombits(before), math.Float64frombits(v)
	form = wholeForm
	i, ok := inUnits(a, 1)
	j, also := inUnits(b, 1)
	if !ok || !also {
		form = milliForm
		if i, ok = inUnits(a, milli); ok {
			j, ok = inUnits(b, milli)
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

// inUnits returns v in units of 1/scale, if v is exactly that quotient.
func inUnits(v, scale float64) (int64, bool) {
	const most = 1 << 50
	x := v * scale
	if !(x > -most && x < most) {
		return 0, false
	}
	i := int64(math.RoundToEven(x))
	return i, math.Float64bits(float64(i)/scale) == math.Float64bits(v)
}

// read appends the samples of a stream. buf is memory to use, which it returns.
func (s *streams) read(stream uint32, ts []int64, vals []float64, buf []byte) ([]int64, []float64, []byte) {
	x := &s.tails[stream]
	buf = s.bytes(buf[:0], x)
	t, step, v := s.base, int64(0), uint64(0)
	b := buf
	for range x.n {
		c := b[0]
		b = b[1:]
		if c&sameStep == 0 {
			d, n := binary.Varint(b)
			b, step = b[n:], step+d
		}
		t += step
		form := c &^ sameStep
		size := int(form)
		if form >= xorForm {
			size = int(form-xorForm)%8 + 1
		} else if form > milliForm {
			size = int(form - milliForm)
		}
		rest := uint64(0)
		for k := range size {
			rest |= uint64(b[k]) << (8 * k)
		}
		b = b[size:]
		switch d := int64(rest>>1) ^ -int64(rest&1); {
		case form == 0:
		case form >= xorForm:
			v ^= rest << (8 * (int(form-xorForm) / 8))
		case form > milliForm:
			v = math.Float64bits(float64(int64(math.RoundToEven(math.Float64frombits(v)*milli))+d) / milli)
		default:
			v = math.Float64bits(float64(int64(math.Float64frombits(v)) + d))
		}
		ts, vals = append(ts, t), append(vals, math.Float64frombits(v))
	}
	return ts, vals, buf
}
