package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// The functions below build flat REQUIRED columns of one data page. The returned chunks alias s.

// Int64s returns a delta-coded INT64 column with statistics.
func Int64s(name string, s *Scratch, vals []int64) (Chunk, error) {
	s.Data = s.Data[:0]
	return int64s([]string{name}, s, len(vals), vals)
}

// ByteInt64s is Int64s with deltas in whole bytes. It must have a value.
func ByteInt64s(name string, s *Scratch, vals []int64) Chunk {
	s.Data = delta.AppendBytes(s.Data[:0], vals)
	return Chunk{
		Path: []string{name}, Type: format.Int64, Pages: s.page(format.DeltaBinaryPacked, len(vals)), Min: stat(slices.Min(vals)), Max: stat(slices.Max(vals)),
	}
}

// Uint64s returns a PLAIN column of unsigned INT64 with statistics.
func Uint64s(name string, s *Scratch, vals []uint64) Chunk {
	s.Data = AppendWords(s.Data[:0], vals)
	c := Chunk{Path: []string{name}, Type: format.Int64, Pages: s.page(format.Plain, len(vals))}
	if len(vals) > 0 {
		c.Min, c.Max = stat(slices.Min(vals)), stat(slices.Max(vals))
	}
	return c
}

// Doubles returns a PLAIN DOUBLE column without statistics, which cannot hold NaN.
func Doubles(name string, s *Scratch, vals []float64) Chunk {
	s.Data = s.Data[:0]
	return doubles([]string{name}, s, len(vals), vals)
}

// SplitDoubles returns a DOUBLE column in BYTE_STREAM_SPLIT without statistics: first the lowest
// bytes of all values, then the next ones. It compresses better than PLAIN where values have
// similar exponents or few digits.
func SplitDoubles(name string, s *Scratch, vals []float64) Chunk {
	s.Data = slices.Grow(s.Data[:0], 8*len(vals))
	for shift := 0; shift < 64; shift += 8 {
		for _, v := range vals {
			s.Data = append(s.Data, byte(math.Float64bits(v)>>shift))
		}
	}
	return Chunk{Path: []string{name}, Type: format.Double, Pages: s.page(format.ByteStreamSplit, len(vals))}
}

// Binaries returns a PLAIN column of byte strings without statistics.
func Binaries(name string, s *Scratch, vals [][]byte) Chunk {
	s.Data = s.Data[:0]
	return binaries([]string{name}, s, len(vals), vals)
}

// stat encodes an INT64, signed or not, for statistics.
func stat[T int64 | uint64](v T) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// int64s appends the delta-coded values to s.Data, which already holds the page's levels.
func int64s(path []string, s *Scratch, entries int, vals []int64) (Chunk, error) {
	enc, err := delta.Tight(s.Dict[:0], vals)
	if err != nil {
		return Chunk{}, err
	}
	s.Dict = enc
	s.Data = append(s.Data, enc...)
	c := Chunk{Path: path, Type: format.Int64, Pages: s.page(format.DeltaBinaryPacked, entries)}
	if len(vals) > 0 {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for _, v := range vals {
			lo, hi = min(lo, v), max(hi, v)
		}
		c.Min, c.Max = stat(lo), stat(hi)
	}
	return c, nil
}

// doubles and binaries append values to s.Data, as int64s does.
func doubles(path []string, s *Scratch, entries int, vals []float64) Chunk {
	s.Data = AppendWords(s.Data, vals)
	return Chunk{Path: path, Type: format.Double, Pages: s.page(format.Plain, entries)}
}

// AppendWords appends values of eight bytes in PLAIN encoding.
func AppendWords[T word](b []byte, vals []T) []byte {
	b = slices.Grow(b, 8*len(vals))
	for _, v := range wordsOf(vals) {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func binaries(path []string, s *Scratch, entries int, vals [][]byte) Chunk {
	for _, v := range vals {
		s.Data = appendString(s.Data, v)
	}
	return Chunk{Path: path, Type: format.ByteArray, Pages: s.page(format.Plain, entries)}
}

// zstdWindow is the size of zstd's window, in bytes. It holds a whole page of 128k eight-byte
// values.
const zstdWindow = 1 << 20

// Encoders keeps zstd encoders from one file to the next, because the tables of a new encoder (up
// to 34 MB) cost more than the compression of a small file. The garbage collector frees encoders
// that are not used for some time. The zero value is ready; nil keeps none. Its methods may be
// called concurrently.
type Encoders struct {
	free [zstd.SpeedBestCompression + 1]sync.Pool
}

// Get returns an encoder for NewWriter. It fails only if the encoder cannot be created.
func (e *Encoders) Get(l zstd.EncoderLevel) (*zstd.Encoder, error) {
	if e != nil {
		if z, ok := e.free[l].Get().(*zstd.Encoder); ok {
			return z, nil
		}
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("create zstd encoder: %w", err)
	}
	return z, nil
}

// Put takes back an encoder of Get that nothing uses any more.
func (e *Encoders) Put(l zstd.EncoderLevel, z *zstd.Encoder) {
	if e != nil {
		e.free[l].Put(z)
	}
}

// Trial compresses bytes to find out how many they become. It belongs to one goroutine.
type Trial struct {
	Encoder *zstd.Encoder
	out     []byte
}

// Size returns the size of b after compression, in bytes.
func (t *Trial) Size(b []byte) int {
	t.out = t.Encoder.EncodeAll(b, t.out[:0])
	return len(t.out)
}

// Memory is what readers of columns fill again and again: the memory of Layout.Read and of a
// ChunkReader. Short reads of many files share it, so that they allocate little.
type Memory struct {
	Buffer []byte
	Chunk  ChunkReader
}

// maxMemory bounds the bytes of each part of a Memory that is kept.
const maxMemory = 4 << 20

var memories = sync.Pool{New: func() any { return new(Memory) }}

// TakeMemory returns memory that nobody else uses.
func TakeMemory() *Memory { return memories.Get().(*Memory) }

// Release gives the memory back. Nothing that was read with it may alias it.
func (m *Memory) Release() {
	if cap(m.Buffer) > maxMemory || cap(m.Chunk.pages.plain) > maxMemory {
		return
	}
	m.Chunk = ChunkReader{pages: PageReader{plain: m.Chunk.pages.plain}}
	memories.Put(m)
}
