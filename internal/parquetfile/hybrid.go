package parquetfile

import "encoding/binary"

// hybrid writes Parquet's RLE / bit-packed hybrid encoding from runs, so that a column of mostly
// one value costs its number of runs and not its number of rows.
//
//	run of n ≥ 8 equal values:   uvarint(n << 1), value in ceil(width/8) little-endian bytes
//	8·g values, bit-packed:      uvarint(g << 1 | 1), g·width bytes, least significant bit first
//
// Source: apache/parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid (RLE =
// 3)".
type hybrid struct {
	dst   []byte
	width int // bits per value, 1..32
	// values that wait to be bit-packed; a run may only start when their number is a multiple of 8
	pending []uint32
	cur     uint32 // the run that is still growing: n times cur
	n       int
}

// newHybrid appends to dst. width must be at least 1.
func newHybrid(dst []byte, width int, pending []uint32) hybrid {
	return hybrid{dst: dst, width: width, pending: pending[:0]}
}

// run appends n times v. Runs of equal values that follow one another are merged.
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
	for n > 0 && len(h.pending)%8 != 0 {
		h.pending = append(h.pending, v)
		n--
	}
	if n < 8 {
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

// finish ends the encoding, padding the last group with zeros, and returns the bytes.
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
	bits := 0
	for _, v := range h.pending {
		acc |= uint64(v) << bits
		for bits += h.width; bits >= 8; bits -= 8 {
			h.dst = append(h.dst, byte(acc))
			acc >>= 8
		}
	}
	h.pending = h.pending[:0]
}
