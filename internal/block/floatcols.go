package block

import (
	"math"

	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/segment"
)

const (
	// v_raw is dictionary-coded if it has few different values: surely up to rawSure; up to one in rawShare if that is smaller.
	rawSure  = 16
	rawShare = 4
	// gridShare is the number of times that take one byte after compression, at most, if they are on a grid: then a second encoding
	// is not tried.
	gridShare = 32
)

// columns writes the columns of the open row group.
func (f *floats) columns() error {
	if err := f.write(f.table); err != nil {
		return err
	}
	if err := f.add(f.timeChunk(segment.ColTS, f.ts)); err != nil {
		return err
	}
	ints, err := f.pages.lay(f.cols.Int, f.ends)
	if err != nil {
		return err
	}
	if err := f.add(ints, nil); err != nil {
		return err
	}
	f.count(f.cols.Div, math.MaxInt)
	if err := f.add(f.num.Doubles(ColDiv, &f.s), nil); err != nil {
		return err
	}
	if err := f.add(f.rawChunk(), nil); err != nil {
		return err
	}
	if !f.hasST {
		return nil
	}
	return f.add(f.timeChunk(segment.ColST, f.st))
}

// timeChunk builds ts or st: delta-coded, tightly or in whole bytes, whichever is smaller. Where the times of a scrape are not on a grid, its
// series repeat one sequence of odd deltas, and zstd finds it again only in whole bytes.
func (f *floats) timeChunk(name string, vals []int64) (parquetfile.Chunk, error) {
	c, err := parquetfile.Int64s(name, &f.s, vals)
	if err != nil {
		return c, err
	}
	page := &c.Pages[0]
	tight := f.size(page.Data)
	if tight*gridShare <= len(vals) {
		return c, nil
	}
	f.other.Data = parquetfile.AppendByteDelta(f.other.Data[:0], vals)
	if f.size(f.other.Data) < tight {
		page.Data = f.other.Data
	}
	return c, nil
}

// rawChunk builds v_raw.
func (f *floats) rawChunk() parquetfile.Chunk {
	raw := f.cols.Raw
	if !f.count(raw, max(rawSure, len(raw)/rawShare)) {
		return parquetfile.Doubles(ColRaw, &f.s, raw)
	}
	coded := f.num.Doubles(ColRaw, &f.s)
	if f.num.Distinct() <= rawSure {
		return coded
	}
	plain := parquetfile.Doubles(ColRaw, &f.other, raw)
	if f.size(plain.Pages[0].Data) < f.size(coded.Dict)+f.size(coded.Pages[0].Data) {
		return plain
	}
	return coded
}

// size returns the size of b after compression, in bytes.
func (f *floats) size(b []byte) int {
	f.tried = f.zstd.EncodeAll(b, f.tried[:0])
	return len(f.tried)
}

// count fills num with the runs of vals, and gives up (false) beyond so many distinct ones.
func (f *floats) count(vals []float64, limit int) bool {
	f.num.Reset()
	for i := 0; i < len(vals); {
		b := math.Float64bits(vals[i])
		n := 1
		for i+n < len(vals) && math.Float64bits(vals[i+n]) == b {
			n++
		}
		f.num.Append(b, n)
		if f.num.Distinct() > limit {
			return false
		}
		i += n
	}
	return true
}
