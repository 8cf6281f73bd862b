package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// Singles reports whether each list of a page has one element, as after a scrape, so that the
// element of a list is at its position.
func (p *DataPage) Singles() bool {
	return allLevels(p.Repetition, p.Entries, 0) && allLevels(p.Definition, p.Entries, 1)
}

// allLevels reports whether all of n levels are level.
func allLevels(b []byte, n, level int) bool {
	all := true
	err := hybridRuns(b, 1, n, 2, func(r Run) { all = all && r.Index == level })
	return err == nil && all
}

// WordsIn appends the values of a PLAIN page of n 8-byte values at positions [from, to), as bits.
func (p *DataPage) WordsIn(dst []uint64, n, from, to int) ([]uint64, error) {
	if p.Encoding != format.Plain || len(p.Values) != 8*n || from > to || to > n {
		return nil, fmt.Errorf("%w: values %d to %d of %d in %d bytes and encoding %v", ErrFormat, from, to, n, len(p.Values), p.Encoding)
	}
	dst = slices.Grow(dst, to-from)
	for b := p.Values[8*from : 8*to]; len(b) > 0; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst, nil
}

// WordsAt appends 8-byte values of a PLAIN page of n: those at ascending positions less first, as
// bits.
func (p *DataPage) WordsAt(dst []uint64, n int, at []uint32, first uint32) ([]uint64, error) {
	if p.Encoding != format.Plain || len(p.Values) != 8*n {
		return nil, fmt.Errorf("%w: %d bytes of %d values in encoding %v", ErrFormat, len(p.Values), n, p.Encoding)
	}
	dst = slices.Grow(dst, len(at))
	for _, i := range at {
		if int(i-first) >= n {
			return nil, errPosition(i-first, n)
		}
		dst = append(dst, binary.LittleEndian.Uint64(p.Values[8*(i-first):]))
	}
	return dst, nil
}

// DoublesAt is WordsAt for DOUBLE.
func (p *DataPage) DoublesAt(dst []float64, n int, at []uint32, first uint32) ([]float64, error) {
	words, err := p.WordsAt(nil, n, at, first)
	for _, w := range words {
		dst = append(dst, math.Float64frombits(w))
	}
	return dst, err
}

// Int64sAt is WordsAt for INT64, in PLAIN or DELTA_BINARY_PACKED. Values after the last position
// are not decoded.
func (p *DataPage) Int64sAt(dst []int64, n int, at []uint32, first uint32) ([]int64, error) {
	if p.Encoding != format.DeltaBinaryPacked {
		words, err := p.WordsAt(nil, n, at, first)
		for _, w := range words {
			dst = append(dst, int64(w))
		}
		return dst, err
	}
	var d delta.Reader
	if err := d.Reset(p.Values, n); err != nil {
		return nil, asFormat(err)
	}
	dst = slices.Grow(dst, len(at))
	next := 0 // position of the reader
	for len(at) > 0 {
		from, k := int(at[0]-first), 1
		for k < len(at) && at[k] == at[k-1]+1 {
			k++
		}
		if from < next {
			return nil, errPosition(at[0]-first, n)
		}
		if err := d.Skip(from - next); err != nil {
			return nil, asFormat(err)
		}
		end := len(dst)
		dst = dst[:end+k]
		if err := d.Read(wordsOf(dst[end:])); err != nil {
			return nil, asFormat(err)
		}
		next, at = from+k, at[k:]
	}
	return dst, nil
}

func errPosition(i uint32, n int) error {
	return fmt.Errorf("%w: position %d in a page of %d values", ErrFormat, i, n)
}
