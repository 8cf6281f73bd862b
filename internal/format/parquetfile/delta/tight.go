package delta

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/delta"
)

// deltaMini is the number of values of a miniblock of a usual block.
const deltaMini = deltaBlock / deltaMinis

// Tight encodes vals in DELTA_BINARY_PACKED with deltas of as few bits as possible, into the
// memory of dst. parquet-go encodes whole blocks quickly, but pads the last one with zeros before it
// determines the least delta, so that its deltas become as wide as the values.
func Tight(dst []byte, vals []int64) ([]byte, error) {
	whole := max(0, len(vals)-1)/deltaBlock*deltaBlock + 1
	if len(vals) <= deltaBlock {
		if len(vals) == 0 {
			return appendDeltaHead(dst[:0], deltaBlock, 0, 0), nil
		}
		return appendTightBlock(appendDeltaHead(dst[:0], deltaBlock, len(vals), vals[0]), vals), nil
	}
	out, err := new(delta.BinaryPackedEncoding).EncodeInt64(dst, vals[:whole])
	if err != nil {
		return out, fmt.Errorf("encode integers: %w", err)
	}
	var head [2][4 * binary.MaxVarintLen64]byte
	had, has := appendDeltaHead(head[0][:0], deltaBlock, whole, vals[0]), appendDeltaHead(head[1][:0], deltaBlock, len(vals), vals[0])
	return appendTightBlock(slices.Replace(out, 0, len(had), has...), vals[whole-1:]), nil
}

// appendDeltaHead appends the header of n values in blocks of a size.
func appendDeltaHead(dst []byte, size, n int, first int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = binary.AppendUvarint(dst, deltaMinis)
	dst = binary.AppendUvarint(dst, uint64(n))
	return binary.AppendVarint(dst, first)
}

// appendTightBlock appends the deltas between vals, at most deltaBlock, as one block. It appends
// nothing if there is none.
func appendTightBlock(dst []byte, vals []int64) []byte {
	if len(vals) < 2 {
		return dst
	}
	least, _ := deltaRange(vals)
	dst = binary.AppendVarint(dst, least)
	widths := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for m := 0; len(vals) > 1; m++ {
		n := min(deltaMini, len(vals)-1)
		var all uint64
		for i := range n {
			all |= uint64(vals[i+1]-vals[i]) - uint64(least)
		}
		width := bits.Len64(all)
		dst[widths+m] = byte(width)
		var acc uint64 // bits that are not written yet, fewer than 64
		have := 0
		for i := range deltaMini { // a miniblock is always complete
			var d uint64
			if i < n {
				d = uint64(vals[i+1]-vals[i]) - uint64(least)
			}
			acc |= d << have
			if have += width; have >= 64 {
				dst = binary.LittleEndian.AppendUint64(dst, acc)
				have -= 64
				acc = d >> (width - have)
			}
		}
		for ; have > 0; have -= 8 { // 32 values are whole bytes
			dst = append(dst, byte(acc))
			acc >>= 8
		}
		vals = vals[n:]
	}
	return dst
}
