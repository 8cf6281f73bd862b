package merge

import "encoding/binary"

const (
	slabBytes     = 1 << 20
	unitBytes     = 16 // blocks begin at multiples of it: their addresses are in this unit
	minBlockBytes = 16
	maxBlockBytes = 384
	linkBytes     = 4 // the address of the next block, with which a block begins
)

// arena has the blocks of streams. Each block of a stream is twice as large as the one before it,
// up to maxBlockBytes.
type arena struct {
	slabs [][]byte
	used  int // bytes of the last slab
}

// block returns the address of a new block of size bytes.
func (a *arena) block(size int) uint32 {
	if len(a.slabs) == 0 || a.used+size > slabBytes {
		a.slabs, a.used = append(a.slabs, make([]byte, slabBytes)), 0
	}
	at := uint32((len(a.slabs)-1)*(slabBytes/unitBytes) + a.used/unitBytes)
	a.used += size
	return at
}

// from returns the memory from a block on: the block and what follows it in its slab.
func (a *arena) from(block uint32) []byte {
	return a.slabs[block/(slabBytes/unitBytes)][block%(slabBytes/unitBytes)*unitBytes:]
}

// write appends bytes to a stream.
func (a *arena) write(x *tail, p []byte) {
	last := int(x.size) * unitBytes
	n := copy(a.from(x.last)[x.used:last], p)
	x.used += uint16(n)
	if n == len(p) {
		return
	}
	size := min(2*last, maxBlockBytes)
	next := a.block(size)
	binary.LittleEndian.PutUint32(a.from(x.last), next)
	x.last, x.size = next, uint8(size/unitBytes)
	x.used = linkBytes + uint16(copy(a.from(next)[linkBytes:], p[n:]))
}

// bytes appends the bytes of a stream.
func (a *arena) bytes(dst []byte, x *tail) []byte {
	size := minBlockBytes
	for b := x.first; ; size = min(2*size, maxBlockBytes) {
		block := a.from(b)
		if b == x.last {
			return append(dst, block[linkBytes:x.used]...)
		}
		dst = append(dst, block[linkBytes:size]...)
		b = binary.LittleEndian.Uint32(block)
	}
}
