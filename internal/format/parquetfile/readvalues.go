package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
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
		var d delta.Reader
		if err := d.Reset(p.Values, n); err != nil {
			return nil, asFormat(err)
		}
		at := len(dst)
		dst = slices.Grow(dst, n)[:at+n]
		if err := d.Read(wordsOf(dst[at:])); err != nil {
			return nil, asFormat(err)
		}
		return dst, nil
	case format.RLEDictionary:
		return appendIndexed(dst, p, n, dict)
	}
	return nil, p.unsupported("integers")
}

// wordsOf is the memory of v as words.
func wordsOf[T int64 | float64](v []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// Doubles appends the n DOUBLE values of a page, in PLAIN, BYTE_STREAM_SPLIT or as indexes of dict.
func (p *DataPage) Doubles(dst []float64, n int, dict []float64) ([]float64, error) {
	switch p.Encoding {
	case format.Plain:
		return appendDoubles(dst, p.Values, n)
	case format.ByteStreamSplit:
		if len(p.Values) != 8*n {
			return nil, fmt.Errorf("%w: %d bytes of %d doubles", ErrFormat, len(p.Values), n)
		}
		dst = slices.Grow(dst, n)
		for i := range n {
			var bits uint64
			for k := range 8 {
				bits |= uint64(p.Values[k*n+i]) << (8 * k)
			}
			dst = append(dst, math.Float64frombits(bits))
		}
		return dst, nil
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

// Uint64s appends the values of a PLAIN page.
func (p *DataPage) Uint64s(dst []uint64) ([]uint64, error) {
	if p.Encoding != format.Plain || len(p.Values) != 8*p.Entries {
		return nil, fmt.Errorf("%w: %d bytes for %d rows in encoding %v", ErrFormat, len(p.Values), p.Entries, p.Encoding)
	}
	dst = slices.Grow(dst, p.Entries)
	for b := p.Values; len(b) > 0; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst, nil
}

// Room returns memory for the values of all rows of a file, one for each, before the n values of a
// first page are appended: so those need not be copied again for the next one. A damaged file may
// claim any number of rows, so that there is only room for so many such pages.
func Room[T any](l *Layout, all []T, n int) []T {
	const mostPages = 64
	if len(all) > 0 || n == 0 {
		return all
	}
	return slices.Grow(all, int(min(l.Rows, mostPages*int64(n))))
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
