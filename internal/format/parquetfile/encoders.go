package parquetfile

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

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
