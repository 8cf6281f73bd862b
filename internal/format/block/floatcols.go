package block

import (
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// gridShare is the least number of times per compressed byte at which times count as regular; then
// no second encoding is tried.
const gridShare = 32

// times is how a column of times is encoded.
type times struct {
	bytes bool // in whole bytes
	left  int  // the next row groups that have the encoding of the one before without another try
}

// timeChunk builds ts or st: delta-coded, bit-packed or in whole bytes, whichever is smaller. Where
// the times of a scrape are irregular, all of its series repeat one sequence of deltas, and zstd
// finds it again only in whole bytes. It is mostly the same in all row groups of a block.
func (f *floats) timeChunk(name string, vals []int64, how *times) (parquetfile.Chunk, error) {
	if how.left--; how.left >= 0 && how.bytes {
		return parquetfile.ByteInt64s(name, &f.s, vals), nil
	}
	c, err := parquetfile.Int64s(name, &f.s, vals)
	if err != nil || how.left >= 0 {
		return c, err
	}
	page := &c.Pages[0]
	tight := f.size(page.Data)
	if *how = (times{left: f.pages.skip}); tight*gridShare <= len(vals) {
		return c, nil
	}
	f.other.Data = delta.AppendBytes(f.other.Data[:0], vals)
	if f.size(f.other.Data) < tight {
		page.Data, how.bytes = f.other.Data, true
	}
	return c, nil
}

// size returns the size of b after compression, in bytes.
func (f *floats) size(b []byte) int {
	f.tried = f.zstd.EncodeAll(b, f.tried[:0])
	return len(f.tried)
}
