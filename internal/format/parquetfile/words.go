package parquetfile

import (
	"encoding/binary"
	"errors"

	"github.com/klauspost/compress/huff0"
)

const (
	wordBytes = 8
	// wordsLog is the logarithm of the number of words of which a block knows where they were last.
	wordsLog = 12
	// wordFactor makes a hash of a word: 2⁶⁴ divided by the golden ratio.
	wordFactor = 0x9e3779b97f4a7c15
)

// Words compresses numbers of eight bytes to zstd frames, in which only whole numbers are
// repetitions. All other bytes are literals, as are zeros, of which numbers have many. Samples of
// one time, each of another series, have few other repetitions: their frames are a tenth larger
// than those of the library's fastest encoder, and take half of the time. The zero value is ready.
// It belongs to one goroutine.
//
//	frame     as of Literals
//	block     3 bytes: last, type, size; then the bytes as they are, or
//	literals  header; the bytes as they are, or one that is repeated, or table and streams
//	          then the sequences
//
// Source: RFC 8878, 3.1.1 to 3.1.1.3.2.
type Words struct {
	huff      huff0.Scratch
	last      [1 << wordsLog]uint32 // by hash of a word: one more than where it begins; 0: nowhere yet
	literals  []byte
	sequences []sequence
}

// Append appends a frame of b to dst. The last bytes of b are numbers.
func (w *Words) Append(dst, b []byte) []byte { return appendFrame(dst, b, w.block) }

// block appends a block.
func (w *Words) block(dst, b []byte, last bool) []byte {
	// Divide a block into literals and sequences.
	clear(w.last[:])
	w.literals, w.sequences = w.literals[:0], w.sequences[:0]
	from := 0 // literals since the last match
	for i := len(b) % wordBytes; i < len(b); {
		x := binary.LittleEndian.Uint64(b[i:])
		last := &w.last[x*wordFactor>>(64-wordsLog)]
		was := int(*last) - 1
		*last = uint32(i + 1)
		if was < 0 || binary.LittleEndian.Uint64(b[was:]) != x {
			i += wordBytes
			continue
		}
		end := i + wordBytes
		for d := i - was; end < len(b) && binary.LittleEndian.Uint64(b[end:]) == binary.LittleEndian.Uint64(b[end-d:]); {
			end += wordBytes
		}
		w.literals = append(w.literals, b[from:i]...)
		w.sequences = append(w.sequences, sequence{uint32(i - from), uint32(end - i), uint32(i - was)})
		i, from = end, end
	}
	w.literals = append(w.literals, b[from:]...)
	head := len(dst)
	dst = blockHeader(dst, compressedBlock, 0, last)
	dst = appendSequences(w.appendLiterals(dst), w.sequences)
	size := len(dst) - head - blockHead
	if size >= len(b) {
		return append(blockHeader(dst[:head], rawBlock, len(b), last), b...)
	}
	blockHeader(dst[:head], compressedBlock, size, last)
	return dst
}

// appendLiterals appends the literals of a block.
func (w *Words) appendLiterals(dst []byte) []byte {
	b := w.literals
	w.huff.Reuse = huff0.ReusePolicyNone
	coded, _, err := huff0.Compress4X(b, &w.huff)
	switch {
	case errors.Is(err, huff0.ErrUseRLE) && len(b) > 0:
		return append(plainHeader(dst, rleBlock, len(b)), b[0])
	case err != nil || len(coded)+literalHead >= len(b):
		return append(plainHeader(dst, rawBlock, len(b)), b...)
	}
	return append(append(dst, literalsHeader(len(b), len(coded))...), coded...)
}

// plainHeader appends the header of literals that are not coded: as they are, or one that is
// repeated. The kinds have the same numbers as those of blocks.
func plainHeader(dst []byte, kind, size int) []byte {
	switch {
	case size < 1<<5:
		return append(dst, byte(kind|size<<3))
	case size < 1<<12:
		return binary.LittleEndian.AppendUint16(dst, uint16(kind|1<<2|size<<4))
	}
	v := kind | 3<<2 | size<<4
	return append(dst, byte(v), byte(v>>8), byte(v>>16))
}

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
