package parquetfile

import "encoding/binary"

// hybrid encodes runs in Parquet's RLE / bit-packed hybrid encoding. Its cost depends on the number
// of runs, not on the number of rows.
//
//	run of n ≥ least equal values: uvarint(n << 1), value in ceil(width/8) little-endian bytes
//	8·g values, bit-packed:        uvarint(g << 1 | 1), g·width bytes, least significant bit first
//
// Source: apache/parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid (RLE =
// 3)".
type hybrid struct {
	dst   []byte
	width int // bits per value, 1..32
	least int // values of a run that is stored as such
	// values to be bit-packed; an RLE run may start only after a multiple of 8 of them
	pending []uint32
	cur     uint32 // the current run: n times cur
	n       int
}

// newHybrid returns an encoder that appends to dst. width must be at least 1.
func newHybrid(dst []byte, width int, pending []uint32) hybrid {
	return hybrid{dst: dst, width: width, least: usualRun, pending: pending[:0]}
}

// usualRun is the usual least length of a run: shorter ones, bit-packed, compress as well.
const usualRun = 8

// shortRun is the least length of a run that takes fewer bytes than its values do bit-packed.
func shortRun(width int) int { return min(usualRun, (1+(width+7)/8)*8/width+1) }

// run appends n times v. It merges adjacent runs of the same value.
func (h *hybrid) run(v uint32, n int) {
	if v != h.cur {
		h.emit()
		h.cur = v
	}
	h.n += n
}

func (h *hybrid) emit() {
	v, n := h.cur, h.n
	h.n = 0
	if n < h.least { // most runs of some columns are of one value
		for ; n > 0; n-- {
			h.pending = append(h.pending, v)
		}
		return
	}
	for n > 0 && len(h.pending)%8 != 0 {
		h.pending = append(h.pending, v)
		n--
	}
	if n < h.least {
		for ; n > 0; n-- {
			h.pending = append(h.pending, v)
		}
		return
	}
	h.flush()
	h.dst = binary.AppendUvarint(h.dst, uint64(n)<<1)
	for b := 0; b < h.width; b += 8 {
		h.dst = append(h.dst, byte(v>>b))
	}
}

// finish completes the encoding, pads the last group with zeros, and returns the bytes.
func (h *hybrid) finish() []byte {
	h.emit()
	for len(h.pending)%8 != 0 {
		h.pending = append(h.pending, 0)
	}
	h.flush()
	return h.dst
}

func (h *hybrid) flush() {
	if len(h.pending) == 0 {
		return
	}
	h.dst = binary.AppendUvarint(h.dst, uint64(len(h.pending)/8)<<1|1)
	var acc uint64
	bits := 0 // of acc, less than 32
	for _, v := range h.pending {
		acc |= uint64(v) << bits
		if bits += h.width; bits >= 32 {
			h.dst = binary.LittleEndian.AppendUint32(h.dst, uint32(acc))
			acc, bits = acc>>32, bits-32
		}
	}
	for ; bits > 0; bits -= 8 {
		h.dst = append(h.dst, byte(acc))
		acc >>= 8
	}
	h.pending = h.pending[:0]
}
