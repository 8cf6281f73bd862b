package rollup

import (
	"math"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// shared writes the columns of a row group of which some are equal, such as those that are 0 in all
// rows: the later one is a second name of the bytes of the first.
type shared struct {
	w    *parquetfile.Writer
	done []sharedColumn
}

type sharedColumn struct {
	name string
	vals bitColumn
}

// bitColumn has the bits of the values of a column.
type bitColumn struct {
	ints   []int64
	floats []float64
}

func intBits(v []int64) bitColumn     { return bitColumn{ints: v} }
func floatBits(v []float64) bitColumn { return bitColumn{floats: v} }

// equal reports whether both columns have the same type and the same bits.
func (b bitColumn) equal(o bitColumn) bool {
	if len(b.ints) != len(o.ints) || len(b.floats) != len(o.floats) {
		return false
	}
	for i, v := range b.ints {
		if v != o.ints[i] {
			return false
		}
	}
	for i, v := range b.floats {
		if math.Float64bits(v) != math.Float64bits(o.floats[i]) {
			return false
		}
	}
	return true
}

// add writes a column, which chunk encodes, or a second name of an equal one.
func (s *shared) add(name string, vals bitColumn, chunk func() (parquetfile.Chunk, error)) {
	for _, d := range s.done {
		if vals.equal(d.vals) {
			s.w.Alias(name, d.name)
			return
		}
	}
	s.w.Add(chunk())
	s.done = append(s.done, sharedColumn{name, vals})
}
