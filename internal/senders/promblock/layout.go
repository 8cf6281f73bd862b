package promblock

import (
	"fmt"
	"io"

	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// histogramHeader is the number of bytes before the layout in the chunks of native histograms: the
// number of samples, and flags or the header of start timestamps.
const histogramHeader = 3

// checkBuckets returns an error if a chunk of native histograms claims more buckets than it can
// hold. Upstream's iterator makes room for as many as the lengths of the spans add up to, and each
// bucket of the first sample takes at least one bit.
//
//	layout = zero-threshold schema spans spans …   ; positive, then negative buckets
//	zero-threshold = a byte, and after 255 eight more
//	spans = count *(length offset)   ; numbers are varbits
func checkBuckets(c chunkenc.Chunk) error {
	switch c.Encoding() {
	case chunkenc.EncHistogram, chunkenc.EncFloatHistogram, chunkenc.EncHistogramST, chunkenc.EncFloatHistogramST:
	default:
		return nil
	}
	b := c.Bytes()
	most := 8 * uint64(len(b))
	r := &bitReader{b: b[min(histogramHeader, len(b)):]}
	if r.bits(8) == 255 {
		r.bits(64)
	}
	r.varbit() // schema
	buckets := uint64(0)
	for range 2 {
		for n := r.varbit(); n > 0 && !r.ended; n-- {
			buckets += uint64(uint32(r.varbit())) // upstream keeps 32 bits, too
			r.varbit()                            // offset
			if buckets > most {
				return fmt.Errorf("its spans have more than %d buckets, the limit of a chunk of %d bytes", most, len(b))
			}
		}
	}
	if r.ended && c.NumSamples() > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// bitReader reads bits from the highest of each byte on. After the end it returns zeros.
type bitReader struct {
	b     []byte
	at    int // bits
	ended bool
}

// bits reads a number of n bits.
func (r *bitReader) bits(n int) (v uint64) {
	if r.at+n > 8*len(r.b) {
		r.at, r.ended = 8*len(r.b), true
		return 0
	}
	for ; n > 0; n-- {
		v = v<<1 | uint64(r.b[r.at/8]>>(7-r.at%8)&1)
		r.at++
	}
	return v
}

// varbitSizes are the bits of a number by the ones before it, of which there are at most eight. A
// zero follows fewer ones.
var varbitSizes = [...]int{0, 3, 6, 9, 12, 18, 25, 56, 64}

// varbit reads a number as chunkenc writes unsigned ones.
func (r *bitReader) varbit() uint64 {
	ones := 0
	for ones < len(varbitSizes)-1 && r.bits(1) == 1 {
		ones++
	}
	return r.bits(varbitSizes[ones])
}
