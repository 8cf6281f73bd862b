package series

import "slices"

// chunked is a list that grows by chunks, so that no growth moves more than the first one. A list of
// millions in one array is copied again and again while it grows, takes twice its memory meanwhile,
// and a collection of garbage waits for each copy.
type chunked[T any] struct {
	chunks [][]T // full, apart from the last one
	n      int
}

const (
	chunkBits = 13
	chunkLen  = 1 << chunkBits
)

func (c *chunked[T]) at(i int) *T { return &c.chunks[i>>chunkBits][i&(chunkLen-1)] }

func (c *chunked[T]) append(x T) {
	last := c.n >> chunkBits
	if c.n&(chunkLen-1) == 0 {
		c.chunks = addChunk(c.chunks, chunkLen)
	}
	c.chunks[last] = append(c.chunks[last], x)
	c.n++
}

// reset empties the list. What is appended later uses its memory.
func (c *chunked[T]) reset() { c.chunks, c.n = c.chunks[:0], 0 }

// snapshot returns the list as it is, safe to read while more is appended.
func (c *chunked[T]) snapshot() chunked[T] { return chunked[T]{slices.Clone(c.chunks), c.n} }

// addChunk adds an empty chunk with room for size elements: one that was there before a reset, or a
// new one. The first one, which may remain the only one, grows with its elements instead.
func addChunk[T any](chunks [][]T, size int) [][]T {
	k := len(chunks)
	if k < cap(chunks) {
		if old := chunks[:k+1][k]; k == 0 || cap(old) >= size {
			return append(chunks, old[:0])
		}
	}
	if k == 0 {
		return append(chunks, nil)
	}
	return append(chunks, make([]T, 0, size))
}

// labelSets are label sets, each in one place of memory, so that a reader waits for that once.
type labelSets struct {
	at     chunked[uint32] // by ref: where the set begins: the number of the chunk, then its position in that
	chunks [][]Pair        // of sets: the two halves of the ID, the number of pairs and the metric, then the pairs
}

const (
	setHead     = 2 // of a set, before its pairs
	setBits     = 16
	setChunkLen = 1 << setBits
	maxSetChunk = 1<<(32-setBits) - 1
)

// add adds a label set. No set is divided between chunks.
func (s *labelSets) add(id uint64, metric uint32, pairs []Pair) {
	last := len(s.chunks) - 1
	if n := setHead + len(pairs); last < 0 || len(s.chunks[last])+n > setChunkLen {
		s.chunks = addChunk(s.chunks, max(n, setChunkLen))
		last++
	}
	c := s.chunks[last]
	s.at.append(uint32(last)<<setBits | uint32(len(c)))
	c = append(c, Pair{uint32(id >> 32), uint32(id)}, Pair{uint32(len(pairs)), metric})
	s.chunks[last] = append(c, pairs...)
}

// full reports whether there may be no room for a set.
func (s *labelSets) full() bool { return s.at.n >= maxRefs || len(s.chunks) >= maxSetChunk }

// set returns a set and those behind it.
func (s *labelSets) set(r Ref) []Pair {
	at := *s.at.at(int(r))
	return s.chunks[at>>setBits][at&(setChunkLen-1):]
}

func (s *labelSets) id(r Ref) uint64 {
	id := s.set(r)[0]
	return uint64(id.Name)<<32 | uint64(id.Value)
}

func (s *labelSets) metric(r Ref) uint32 { return s.set(r)[1].Value }

func (s *labelSets) pairs(r Ref) []Pair {
	set := s.set(r)
	return set[setHead : setHead+int(set[1].Name)]
}

func (s *labelSets) reset() {
	s.at.reset()
	s.chunks = s.chunks[:0]
}

// snapshot returns the sets as they are, safe to read while more are added.
func (s *labelSets) snapshot() labelSets { return labelSets{s.at.snapshot(), slices.Clone(s.chunks)} }

// bytes is the memory of the sets.
func (s *labelSets) bytes() int64 {
	n := int64(4 * s.at.n)
	for _, c := range s.chunks {
		n += 8 * int64(len(c))
	}
	return n
}
