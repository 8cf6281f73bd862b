package parquetfile

import "sync"

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
	if cap(m.Buffer) > maxMemory || cap(m.Chunk.body) > maxMemory {
		return
	}
	m.Chunk = ChunkReader{body: m.Chunk.body, head: m.Chunk.head}
	memories.Put(m)
}
