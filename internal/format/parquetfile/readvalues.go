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
		return appendWords(dst, p.Values, n)
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

// word is a value of eight bytes.
type word interface{ int64 | uint64 | float64 }

// wordsOf is the memory of v as words.
func wordsOf[T word](v []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// appendWords appends the n values of b, which are in PLAIN encoding.
func appendWords[T word](dst []T, b []byte, n int) ([]T, error) {
	if len(b) != 8*n {
		return nil, fmt.Errorf("%w: %d bytes of %d values", ErrFormat, len(b), n)
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	for words := wordsOf(dst[at:]); len(words) > 0 && len(b) >= 8; words, b = words[1:], b[8:] {
		words[0] = binary.LittleEndian.Uint64(b)
	}
	return dst, nil
}

// Doubles appends the n DOUBLE values of a page, in PLAIN, BYTE_STREAM_SPLIT or as indexes of dict.
func (p *DataPage) Doubles(dst []float64, n int, dict []float64) ([]float64, error) {
	switch p.Encoding {
	case format.Plain:
		return appendWords(dst, p.Values, n)
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
	if p.Encoding != format.Plain {
		return nil, p.unsupported("words")
	}
	return appendWords(dst, p.Values, p.Entries)
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
func (c *ChunkReader) Doubles() ([]float64, error) {
	return appendWords[float64](nil, c.Dict, c.DictLen)
}

// Int64s returns the dictionary of an INT64 chunk.
func (c *ChunkReader) Int64s() ([]int64, error) {
	return appendWords[int64](nil, c.Dict, c.DictLen)
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
