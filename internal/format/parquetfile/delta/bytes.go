package delta

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Sizes of DELTA_BINARY_PACKED in values. Blocks are multiples of deltaBlock, the size that the
// reference implementations write.
const (
	deltaBlock = 128
	deltaMinis = 4 // miniblocks in a block
	byteBlock  = 2048
)

// AppendBytes appends vals, at least one, in DELTA_BINARY_PACKED with deltas of whole bytes.
// That takes more bytes than tight packing, but zstd sees equal deltas as equal bytes and codes
// frequent ones in few bits. The result is smaller for values with few distinct or unevenly
// distributed deltas. For the same reason all blocks use the least delta of all values as their
// minimum, unless that makes the deltas of a block wider, and blocks are long, because the bytes of
// their headers disturb zstd. They are as short as usual where that takes fewer bytes: where a few
// deltas would widen many others.
//
//	header  uvarint block size, miniblocks in a block, number of values; zigzag varint first value
//	block   zigzag varint least delta, a byte per miniblock with its width in bits,
//	        the miniblocks (delta − least, little-endian)
//
// Source: apache/parquet-format, Encodings.md, "Delta encoding (DELTA_BINARY_PACKED = 5)". Deltas
// wrap around at 64 bits.
func AppendBytes(dst []byte, vals []int64) []byte {
	least, _ := deltaRange(vals)
	size, begin := longBlock(len(vals)-1), len(dst)
	dst = appendByteBlocks(dst, vals, size, least)
	if size == deltaBlock {
		return dst
	}
	long := len(dst)
	dst = appendByteBlocks(dst, vals, deltaBlock, least)
	if len(dst)-long < long-begin {
		return dst[:begin+copy(dst[begin:], dst[long:])]
	}
	return dst[:long]
}

// longBlock returns the size of blocks of n deltas with the fewest bytes of headers and padding,
// at most byteBlock. Of equally good ones it is the longest.
func longBlock(n int) (best int) {
	least := math.MaxInt
	for size := byteBlock; size >= deltaBlock; size -= deltaBlock {
		mini := size / deltaMinis
		blocks, padding := (n+size-1)/size, (mini-n%mini)%mini
		if cost := blocks*(1+deltaMinis) + padding; cost < least {
			best, least = size, cost
		}
	}
	return best
}

// appendByteBlocks appends vals in blocks of size values. least is the least delta.
func appendByteBlocks(dst []byte, vals []int64, size int, least int64) []byte {
	dst = appendDeltaHead(dst, size, len(vals), vals[0])
	for len(vals) > 1 {
		n := min(size, len(vals)-1)
		dst = appendByteBlock(dst, vals[:n+1], size/deltaMinis, least)
		vals = vals[n:]
	}
	return dst
}

// appendByteBlock appends the deltas between vals, at least one, in miniblocks of mini values, at
// most deltaMinis. least is not greater than any delta.
func appendByteBlock(dst []byte, vals []int64, mini int, least int64) []byte {
	lo, hi := deltaRange(vals)
	if byteWidth(uint64(hi)-uint64(least)) > byteWidth(uint64(hi)-uint64(lo)) {
		least = lo
	}
	dst = binary.AppendVarint(dst, least)
	widths := len(dst)
	dst = append(dst, make([]byte, deltaMinis)...)
	for m := 0; len(vals) > 1; m++ {
		n := min(mini, len(vals)-1)
		var all uint64
		for i := range n {
			all |= uint64(vals[i+1]-vals[i]) - uint64(least)
		}
		width := byteWidth(all)
		dst[widths+m] = byte(8 * width)
		for i := range n {
			d := uint64(vals[i+1]-vals[i]) - uint64(least)
			for range width {
				dst = append(dst, byte(d))
				d >>= 8
			}
		}
		dst = append(dst, make([]byte, (mini-n)*width)...) // a miniblock is always complete
		vals = vals[n:]
	}
	return dst
}

// deltaRange returns the smallest and the largest difference between adjacent values.
func deltaRange(vals []int64) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	for i := 1; i < len(vals); i++ {
		d := vals[i] - vals[i-1]
		lo, hi = min(lo, d), max(hi, d)
	}
	return lo, hi
}

// byteWidth returns the number of bytes that v needs.
func byteWidth(v uint64) int { return (bits.Len64(v) + 7) / 8 }
