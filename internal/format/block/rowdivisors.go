package block

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// divisors reads divisors together with the integers, while these are in the processor's cache.
// Most are equal to their neighbours.
type divisors struct {
	f    *FloatReader
	next int64 // the row of the next divisor
	odd  bool  // one was no finite number
}

// someDivisors is how many divisors that may differ are read at once.
const someDivisors = 512

func (d *divisors) open() error {
	span, err := d.f.group.chunkOf(leafDiv)
	if err == nil {
		err = d.f.divs.Reset(d.f.in, span, d.f.group.Rows)
	}
	if err != nil {
		return fmt.Errorf("column %d: %w", leafDiv, err)
	}
	return nil
}

// divide makes the values of rows of v, which holds their integers.
func (d *divisors) divide(r Rows, v []float64) error {
	if len(v) == 0 {
		return nil
	}
	if err := d.f.divs.Skip(r.From - d.next); err != nil {
		return fmt.Errorf("with column %d: %w", leafDiv, err)
	}
	d.next = r.From + r.N
	for len(v) > 0 {
		bits, n, err := d.f.divs.Equal(len(v))
		if err == nil && n == 0 {
			n = min(len(v), someDivisors)
			err = d.divideEach(v[:n])
		} else if err == nil {
			div := math.Float64frombits(bits)
			d.odd = d.odd || !(div <= math.MaxFloat64)
			divideAll(v[:n], div)
		}
		if err != nil {
			return fmt.Errorf("with column %d: %w", leafDiv, err)
		}
		v = v[n:]
	}
	return nil
}

func (d *divisors) divideEach(v []float64) error {
	d.f.div = slices.Grow(d.f.div[:0], len(v))[:len(v)]
	if err := d.f.divs.Doubles(d.f.div); err != nil {
		return err
	}
	ints := intsOf(v)
	for i, div := range d.f.div {
		d.odd = d.odd || !(div <= math.MaxFloat64)
		v[i] = Value(ints[i], div)
	}
	return nil
}

// intsOf is the memory of v as integers.
func intsOf(v []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
