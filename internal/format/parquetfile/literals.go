package parquetfile

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/huff0"
)

// Sizes of a zstd frame of literals, in bytes.
const (
	literalBlock = 128 << 10 // the longest content of a block
	frameHead    = 9         // of a frame, at most
	blockHead    = 3         // of a block
	literalHead  = 5         // of the literals of a block, at most
)

// Types of a block and of its literals.
const (
	rawBlock          = 0
	rleBlock          = 1
	compressedBlock   = 2
	compressedStreams = 2
)

// Literals compresses bytes to zstd frames that only have Huffman-coded literals. Where bytes are
// random but some are more frequent than others, as in deltas of whole bytes, such a frame is
// smaller than that of an encoder that also looks for repetitions: short ones are everywhere and
// cost more than their bytes. It takes less time to write and to read, too. The zero value is
// ready. It belongs to one goroutine.
//
//	frame     magic, descriptor (size of the content), size of the content, blocks
//	block     3 bytes: last, type, size; then the bytes as they are, or one that is repeated, or
//	literals  header (4 streams, sizes before and after), table, streams; then 0: no sequences
//
// Source: RFC 8878, 3.1.1 to 3.1.1.3.1.
type Literals struct{ huff huff0.Scratch }

// Append appends a frame of b to dst.
func (l *Literals) Append(dst, b []byte) []byte { return appendFrame(dst, b, l.block) }

// appendFrame appends a frame of b to dst, whose blocks are appended by block.
func appendFrame(dst, b []byte, block func(dst, b []byte, last bool) []byte) []byte {
	dst = append(dst, zstdMagic...)
	switch n := len(b); { // the window is the whole content: "single segment"
	case n < 256:
		dst = append(dst, 0<<6|1<<5, byte(n))
	case n < 256+1<<16:
		dst = binary.LittleEndian.AppendUint16(append(dst, 1<<6|1<<5), uint16(n-256))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 2<<6|1<<5), uint32(n))
	}
	for {
		n := min(len(b), literalBlock)
		dst = block(dst, b[:n], n == len(b))
		if b = b[n:]; len(b) == 0 {
			return dst
		}
	}
}

// block appends a block.
func (l *Literals) block(dst, b []byte, last bool) []byte {
	l.huff.Reuse = huff0.ReusePolicyNone
	coded, _, err := huff0.Compress4X(b, &l.huff)
	switch {
	case errors.Is(err, huff0.ErrUseRLE) && len(b) > 0:
		return append(blockHeader(dst, rleBlock, len(b), last), b[0])
	case err != nil || len(coded)+literalHead+1 >= len(b):
		return append(blockHeader(dst, rawBlock, len(b), last), b...)
	}
	head := literalsHeader(len(b), len(coded))
	dst = blockHeader(dst, compressedBlock, len(head)+len(coded)+1, last)
	dst = append(append(dst, head...), coded...)
	return append(dst, 0)
}

func blockHeader(dst []byte, kind, size int, last bool) []byte {
	v := kind<<1 | size<<3
	if last {
		v |= 1
	}
	return append(dst, byte(v), byte(v>>8), byte(v>>16))
}

// literalsHeader returns the header of literals in four streams: their size and that of the table
// and the streams.
func literalsHeader(size, coded int) []byte {
	format, bits := 1, 10 // both sizes have as many bits
	switch {
	case size >= 1<<14:
		format, bits = 3, 18
	case size >= 1<<10:
		format, bits = 2, 14
	}
	v := uint64(compressedStreams) | uint64(format)<<2 | uint64(size)<<4 | uint64(coded)<<(4+bits)
	return binary.LittleEndian.AppendUint64(nil, v)[:(4+2*bits+7)/8]
}

// Size returns about the size of a frame of b, in bytes.
func (l *Literals) Size(b []byte) int {
	size := frameHead
	for ; len(b) > 0; b = b[min(len(b), literalBlock):] {
		block := b[:min(len(b), literalBlock)]
		l.huff.Reuse = huff0.ReusePolicyNone
		table, data, _, err := huff0.EstimateSizes(block, &l.huff)
		switch size += blockHead; {
		case errors.Is(err, huff0.ErrUseRLE):
			size++
		case err != nil:
			size += len(block)
		default:
			size += min(len(block), literalHead+table+data+1)
		}
	}
	return size
}
