package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Reader decodes a DELTA_BINARY_PACKED page from its beginning; see AppendBytes for the encoding. A
// skipped value costs only the addition of its delta. The zero value is ready for Reset.
type Reader struct {
	b     []byte // bytes after the current miniblock
	minis int    // miniblocks per block
	size  int    // values per miniblock
	left  int    // unread values
	first bool   // the next value is the page's first
	last  int64

	least  int64  // least delta of the block
	widths []byte // widths in bits of the block's later miniblocks

	mini  []byte // the current miniblock; its values from pos on are unread
	width int
	pos   int
}

// Reset starts a page of n values, which shares b. It may load, but does not use, the eight bytes
// after each run of values, within the length of b. Errors: ErrFormat.
func (d *Reader) Reset(b []byte, n int) error {
	var head [3]uint64 // values per block, miniblocks per block, values
	for i := range head {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return invalid(errCut)
		}
		head[i], b = v, b[k:]
	}
	first, k := binary.Varint(b)
	if k <= 0 {
		return invalid(errCut)
	}
	block, minis := head[0], head[1]
	if head[2] != uint64(n) {
		return invalid(fmt.Errorf("%d values, expected %d", head[2], n))
	}
	if block == 0 || block%128 != 0 || block > 1<<16 || minis == 0 || block%minis != 0 || block/minis%32 != 0 {
		return invalid(fmt.Errorf("blocks of %d values in %d miniblocks", block, minis))
	}
	*d = Reader{b: b[k:], minis: int(minis), size: int(block / minis), left: n, first: true, last: first}
	d.pos = d.size
	return nil
}

// ErrFormat reports bytes that are not delta-coded integers.
var ErrFormat = errors.New("not delta-coded integers")

var errCut = errors.New("values are cut off")

func invalid(err error) error { return fmt.Errorf("%w: %w", ErrFormat, err) }

// open starts the next miniblock.
func (d *Reader) open() error {
	if len(d.widths) == 0 {
		least, k := binary.Varint(d.b)
		if k <= 0 || len(d.b)-k < d.minis {
			return invalid(errCut)
		}
		d.least, d.widths, d.b = least, d.b[k:k+d.minis], d.b[k+d.minis:]
	}
	d.width = int(d.widths[0])
	d.widths = d.widths[1:]
	n := d.size * d.width / 8
	if d.width > 64 || n > len(d.b) {
		return invalid(fmt.Errorf("a miniblock of width %d: %w", d.width, errCut))
	}
	d.mini, d.b, d.pos = d.b[:n:min(len(d.b), n+8)], d.b[n:], 0
	return nil
}

// take returns how many of n values the current miniblock has; it first opens the next one if none
// are left.
func (d *Reader) take(n int) (int, error) {
	if d.pos == d.size {
		if err := d.open(); err != nil {
			return 0, err
		}
	}
	return min(n, d.size-d.pos), nil
}

// Skip skips n values. Errors: ErrFormat, also if the page has fewer.
func (d *Reader) Skip(n int) error {
	if n > d.left {
		return invalid(errCut)
	}
	d.left -= n
	if n > 0 && d.first {
		d.first = false
		n--
	}
	for n > 0 {
		k, err := d.skipBlocks(n)
		if err != nil {
			return err
		}
		if n -= k; n == 0 {
			return nil
		}
		if k, err = d.take(n); err != nil {
			return err
		}
		d.last += int64(k) * d.least
		if d.width > 0 {
			d.last += int64(sumPacked(d.mini, d.width, d.pos, k))
		}
		d.pos += k
		n -= k
	}
	return nil
}

// skipBlocks skips complete blocks with at most n values, if the reader is at the start of a block.
// It returns the number of values skipped.
func (d *Reader) skipBlocks(n int) (skipped int, err error) {
	values := d.size * d.minis
	if d.pos < d.size || len(d.widths) > 0 {
		return 0, nil
	}
	for ; n-skipped >= values; skipped += values {
		least, k := binary.Varint(d.b)
		if k <= 0 || len(d.b)-k < d.minis {
			return 0, invalid(errCut)
		}
		widths, b := d.b[k:k+d.minis], d.b[k+d.minis:]
		d.last += int64(values) * least
		for len(widths) > 0 { // neighbours of one width are one run of packed values
			w, m := widths[0], 1
			for m < len(widths) && widths[m] == w {
				m++
			}
			if widths = widths[m:]; w == 0 {
				continue
			}
			size := m * d.size * int(w) / 8
			if w > 64 || size > len(b) {
				return 0, invalid(fmt.Errorf("a miniblock of width %d: %w", w, errCut))
			}
			d.last += int64(sumPacked(b[:size:min(len(b), size+8)], int(w), 0, m*d.size))
			b = b[size:]
		}
		d.b = b
	}
	return skipped, nil
}

// Read decodes the next len(dst) values. Errors: ErrFormat, also if the page has fewer.
func (d *Reader) Read(dst []uint64) error {
	if len(dst) > d.left {
		return invalid(errCut)
	}
	d.left -= len(dst)
	if len(dst) > 0 && d.first {
		d.first = false
		dst[0], dst = uint64(d.last), dst[1:]
	}
	for len(dst) > 0 {
		k, err := d.readBlocks(dst)
		if err != nil {
			return err
		}
		if dst = dst[k:]; len(dst) == 0 {
			return nil
		}
		if k, err = d.take(len(dst)); err != nil {
			return err
		}
		d.last = int64(addPacked(dst[:k], uint64(d.last), uint64(d.least), d.mini, d.width, d.pos))
		d.pos += k
		dst = dst[k:]
	}
	return nil
}

// readBlocks decodes complete blocks into dst, if the reader is at the start of a block. It returns
// the number of values read.
func (d *Reader) readBlocks(dst []uint64) (read int, err error) {
	values := d.size * d.minis
	if d.pos < d.size || len(d.widths) > 0 {
		return 0, nil
	}
	last := uint64(d.last)
	for len(dst)-read >= values {
		least, k := binary.Varint(d.b)
		if k <= 0 || len(d.b)-k < d.minis {
			return 0, invalid(errCut)
		}
		widths, b := d.b[k:k+d.minis], d.b[k+d.minis:]
		for len(widths) > 0 { // neighbours of one width are one run of packed values
			w, m := widths[0], 1
			for m < len(widths) && widths[m] == w {
				m++
			}
			widths = widths[m:]
			n, size := m*d.size, m*d.size*int(w)/8
			if w > 64 || size > len(b) {
				return 0, invalid(fmt.Errorf("a miniblock of width %d: %w", w, errCut))
			}
			last = addPacked(dst[read:read+n], last, uint64(least), b[:size:min(len(b), size+8)], int(w), 0)
			b = b[size:]
			read += n
		}
		d.b = b
	}
	d.last = int64(last)
	return read, nil
}
