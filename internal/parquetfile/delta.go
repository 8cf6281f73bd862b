package parquetfile

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Sizes of DELTA_BINARY_PACKED as the reference implementations have them, which every reader
// supports.
const (
	deltaBlock = 128 // values
	deltaMini  = 32
	deltaMinis = deltaBlock / deltaMini
)

// AppendByteDelta appends vals, at least one, in DELTA_BINARY_PACKED with deltas of whole bytes.
// That takes more bytes than tight packing, but zstd sees equal deltas as equal bytes and codes
// frequent ones in few bits. The result is smaller for values with few distinct or unevenly
// distributed deltas. For the same reason all blocks use the least delta of all values as their
// minimum, unless that makes the deltas of a block wider.
//
//	header  uvarint block size, miniblocks in a block, number of values; zigzag varint first value
//	block   zigzag varint least delta, a byte per miniblock with its width in bits,
//	        the miniblocks (delta − least, little-endian)
//
// Source: apache/parquet-format, Encodings.md, "Delta encoding (DELTA_BINARY_PACKED = 5)". Deltas
// wrap around at 64 bits.
func AppendByteDelta(dst []byte, vals []int64) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaMinis)
	dst = binary.AppendUvarint(dst, uint64(len(vals)))
	dst = binary.AppendVarint(dst, vals[0])
	least, _ := deltaRange(vals)
	for len(vals) > 1 {
		n := min(deltaBlock, len(vals)-1)
		dst = appendByteBlock(dst, vals[:n+1], least)
		vals = vals[n:]
	}
	return dst
}

// appendByteBlock appends the 1 to deltaBlock deltas between vals. least is not greater than any of
// them.
func appendByteBlock(dst []byte, vals []int64, least int64) []byte {
	lo, hi := deltaRange(vals)
	if byteWidth(uint64(hi)-uint64(least)) > byteWidth(uint64(hi)-uint64(lo)) {
		least = lo
	}
	dst = binary.AppendVarint(dst, least)
	widths := len(dst)
	dst = append(dst, make([]byte, deltaMinis)...)
	for m := 0; len(vals) > 1; m++ {
		n := min(deltaMini, len(vals)-1)
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
		dst = append(dst, make([]byte, (deltaMini-n)*width)...) // a miniblock is always complete
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
