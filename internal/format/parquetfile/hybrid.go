package parquetfile

import (
	"encoding/binary"
	"fmt"
)

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

// hybridReader decodes dictionary indexes in the RLE / bit-packed hybrid encoding from the
// beginning of a page; see hybrid.
type hybridReader struct {
	b     []byte // bytes after the current run
	width int    // bits per index
	left  int    // unread values of the current run
	value int    // of the current run, if it is an RLE run
	bits  []byte // of the current run, if it is bit-packed, else nil
	pos   int    // number of values of bits that were read
}

// reset starts a page of dictionary indexes.
func (h *hybridReader) reset(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: dictionary indexes: %w", ErrFormat, errCut)
	}
	if b[0] > 32 {
		return fmt.Errorf("%w: values of %d bits", ErrFormat, b[0])
	}
	*h = hybridReader{b: b[1:], width: int(b[0])}
	return nil
}

// open starts the next run.
func (h *hybridReader) open() error {
	head, k := binary.Uvarint(h.b)
	if k <= 0 {
		return fmt.Errorf("%w: runs: %w", ErrFormat, errCut)
	}
	b := h.b[k:]
	n, size := head>>1, (h.width+7)/8
	if head&1 == 1 {
		size = int(min(n, uint64(len(b))+1)) * h.width
		n = min(n, 1<<31) * 8
	}
	if size > len(b) {
		return fmt.Errorf("%w: runs: %w", ErrFormat, errCut)
	}
	if n == 0 {
		return fmt.Errorf("%w: an empty run", ErrFormat)
	}
	h.left, h.bits, h.pos = int(min(n, 1<<34)), nil, 0
	if head&1 == 1 {
		h.bits = b[:size:size]
	} else {
		h.value = 0
		for i := size - 1; i >= 0; i-- {
			h.value = h.value<<8 | int(b[i])
		}
	}
	h.b = b[size:]
	return nil
}

// skip skips n values.
func (h *hybridReader) skip(n int) error {
	for n > 0 {
		if h.left == 0 {
			if err := h.open(); err != nil {
				return err
			}
		}
		k := min(n, h.left)
		h.left -= k
		h.pos += k
		n -= k
	}
	return nil
}

// equal skips at most n values that are known to be equal. It returns their entry of dict and their
// number, which is 0 if the next values may differ.
func (h *hybridReader) equal(n int, dict []uint64) (bits uint64, equal int, err error) {
	if h.left == 0 {
		if err := h.open(); err != nil {
			return 0, 0, err
		}
	}
	if h.bits != nil {
		return 0, 0, nil
	}
	if h.value >= len(dict) {
		return 0, 0, errIndex(h.value, len(dict))
	}
	equal = min(n, h.left)
	h.left -= equal
	return dict[h.value], equal, nil
}

// read fills dst with the entries of dict at the next indexes.
func (h *hybridReader) read(dst, dict []uint64) error {
	for len(dst) > 0 {
		if h.left == 0 {
			if err := h.open(); err != nil {
				return err
			}
		}
		k := min(len(dst), h.left)
		if h.bits == nil {
			if h.value >= len(dict) {
				return errIndex(h.value, len(dict))
			}
			fill(dst[:k], dict[h.value])
		} else if err := h.readPacked(dst[:k], dict); err != nil {
			return err
		}
		h.left -= k
		dst = dst[k:]
	}
	return nil
}

func (h *hybridReader) readPacked(dst, dict []uint64) error {
	for i := range dst {
		v := h.packed(h.pos)
		if v >= len(dict) {
			return errIndex(v, len(dict))
		}
		dst[i] = dict[v]
		h.pos++
	}
	return nil
}

// runs calls visit for the next n values, which must be less than limit, run by run. Adjacent runs
// may have the same value.
func (h *hybridReader) runs(n, limit int, visit func(Run)) error {
	for n > 0 {
		if h.left == 0 {
			if err := h.open(); err != nil {
				return err
			}
		}
		count := min(n, h.left)
		run := Run{h.value, count}
		if h.bits != nil {
			run = Run{}
			for i := range count {
				v := h.packed(h.pos + i)
				if run.N > 0 && v != run.Index {
					if run.Index >= limit {
						break
					}
					visit(run)
					run.N = 0
				}
				run = Run{v, run.N + 1}
			}
		}
		if run.Index >= limit {
			return errIndex(run.Index, limit)
		}
		visit(run)
		h.left -= count
		h.pos += count
		n -= count
	}
	return nil
}

// packed returns value i of the current bit-packed run.
func (h *hybridReader) packed(i int) int {
	bit := i * h.width
	rest := h.bits[bit>>3:]
	if len(rest) < 8 { // the last bytes; a value has at most 32 bits
		rest = append(make([]byte, 0, 8), rest...)[:8]
	}
	return int(binary.LittleEndian.Uint64(rest) >> (bit & 7) & (1<<h.width - 1))
}
