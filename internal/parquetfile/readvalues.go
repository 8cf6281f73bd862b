package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

var errCut = errors.New("values are cut off")

// Int64s appends the n INT64 values of a page, in PLAIN, DELTA_BINARY_PACKED or as indexes of dict.
func (p *DataPage) Int64s(dst []int64, n int, dict []int64) ([]int64, error) {
	switch p.Encoding {
	case format.Plain:
		if len(p.Values) != 8*n {
			return nil, fmt.Errorf("%w: %d bytes of %d integers", ErrFormat, len(p.Values), n)
		}
		dst = slices.Grow(dst, n)
		for b := p.Values; len(b) >= 8; b = b[8:] {
			dst = append(dst, int64(binary.LittleEndian.Uint64(b)))
		}
		return dst, nil
	case format.DeltaBinaryPacked:
		if err := checkDelta(p.Values, n); err != nil {
			return nil, fmt.Errorf("%w: delta-coded integers: %w", ErrFormat, err)
		}
		at := len(dst)
		dst = slices.Grow(dst, n)[:at+n]
		out, err := new(delta.BinaryPackedEncoding).DecodeInt64(dst[at:at+n:at+n], p.Values)
		if err != nil || len(out) != n {
			return nil, fmt.Errorf("%w: %d of %d integers: %w", ErrFormat, len(out), n, err)
		}
		if n > 0 && &out[0] != &dst[at] {
			copy(dst[at:], out)
		}
		return dst, nil
	case format.RLEDictionary:
		return appendIndexed(dst, p, n, dict)
	}
	return nil, p.unsupported("integers")
}

// checkDelta checks the lengths and widths of the blocks of a DELTA_BINARY_PACKED page of n values,
// which the decoder does not check.
func checkDelta(b []byte, n int) error {
	next := func() (uint64, error) {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return 0, errCut
		}
		b = b[k:]
		return v, nil
	}
	var head [4]uint64 // values per block, miniblocks per block, values, the first value
	for i := range head {
		var err error
		if head[i], err = next(); err != nil {
			return err
		}
	}
	block, minis, total := head[0], head[1], head[2]
	if total != uint64(n) {
		return fmt.Errorf("%d values, expected %d", total, n)
	}
	if block == 0 || block%128 != 0 || block > 1<<16 || minis == 0 || block%minis != 0 || block/minis%32 != 0 {
		return fmt.Errorf("blocks of %d values in %d miniblocks", block, minis)
	}
	for left := n - 1; left > 0; {
		if _, err := next(); err != nil { // the smallest delta
			return err
		}
		if uint64(len(b)) < minis {
			return errCut
		}
		widths := b[:minis]
		b = b[minis:]
		for _, w := range widths {
			if left <= 0 {
				break
			}
			size := int(block / minis * uint64(w) / 8)
			if w > 64 || size > len(b) {
				return fmt.Errorf("a miniblock of width %d: %w", w, errCut)
			}
			b = b[size:]
			left -= int(block / minis)
		}
	}
	return nil
}

// Doubles appends the n DOUBLE values of a page, in PLAIN or as indexes of dict.
func (p *DataPage) Doubles(dst []float64, n int, dict []float64) ([]float64, error) {
	switch p.Encoding {
	case format.Plain:
		return appendDoubles(dst, p.Values, n)
	case format.RLEDictionary:
		return appendIndexed(dst, p, n, dict)
	}
	return nil, p.unsupported("doubles")
}

// appendIndexed appends the n values of a page of dictionary indexes.
func appendIndexed[T int64 | float64](dst []T, p *DataPage, n int, dict []T) ([]T, error) {
	at := len(dst)
	dst = slices.Grow(dst, n)
	err := p.Runs(n, len(dict), func(r Run) {
		end := len(dst) + r.N
		dst = slices.Grow(dst, r.N)[:end]
		fill(dst[end-r.N:], dict[r.Index])
	})
	if err == nil && len(dst) != at+n {
		err = fmt.Errorf("%w: %d of %d values", ErrFormat, len(dst)-at, n)
	}
	return dst, err
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Doubles returns the dictionary of a DOUBLE chunk.
func (c *ChunkReader) Doubles() ([]float64, error) { return appendDoubles(nil, c.Dict, c.DictLen) }

func appendDoubles(dst []float64, b []byte, n int) ([]float64, error) {
	if len(b) != 8*n {
		return nil, fmt.Errorf("%w: %d bytes of %d doubles", ErrFormat, len(b), n)
	}
	dst = slices.Grow(dst, n)
	for ; len(b) >= 8; b = b[8:] {
		dst = append(dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return dst, nil
}

// Int64s returns the dictionary of an INT64 chunk.
func (c *ChunkReader) Int64s() ([]int64, error) {
	if len(c.Dict) != 8*c.DictLen {
		return nil, fmt.Errorf("%w: dictionary of %d bytes for %d integers", ErrFormat, len(c.Dict), c.DictLen)
	}
	out := make([]int64, c.DictLen)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(c.Dict[8*i:]))
	}
	return out, nil
}

// Uint64s returns the dictionary of a UINT64 chunk.
func (c *ChunkReader) Uint64s() ([]uint64, error) {
	if len(c.Dict) != 8*c.DictLen {
		return nil, fmt.Errorf("%w: dictionary of %d bytes for %d integers", ErrFormat, len(c.Dict), c.DictLen)
	}
	out := make([]uint64, c.DictLen)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(c.Dict[8*i:])
	}
	return out, nil
}

// Strings appends the entries of a BYTE_ARRAY chunk's dictionary. They alias Dict.
func (c *ChunkReader) Strings(dst []string) ([]string, error) {
	return appendStrings(dst, c.Dict, c.DictLen)
}

// Strings appends the n BYTE_ARRAY values of a PLAIN page. They alias the page.
func (p *DataPage) Strings(dst []string, n int) ([]string, error) {
	if p.Encoding != format.Plain {
		return nil, p.unsupported("strings")
	}
	return appendStrings(dst, p.Values, n)
}

func appendStrings(dst []string, b []byte, n int) ([]string, error) {
	for range n {
		if len(b) < 4 {
			return nil, fmt.Errorf("%w: strings: %w", ErrFormat, errCut)
		}
		size := uint64(binary.LittleEndian.Uint32(b))
		if b = b[4:]; size > uint64(len(b)) {
			return nil, fmt.Errorf("%w: string of %d bytes: %w", ErrFormat, size, errCut)
		}
		dst = append(dst, unsafe.String(unsafe.SliceData(b), int(size)))
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last string", ErrFormat, len(b))
	}
	return dst, nil
}

func (p *DataPage) unsupported(what string) error {
	return fmt.Errorf("%w: %s in encoding %v are not supported", ErrFormat, what, p.Encoding)
}
