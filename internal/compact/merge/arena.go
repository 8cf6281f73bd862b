package merge

import "encoding/binary"

const (
	slabBytes  = 1 << 20
	unit       = 16 // bytes, by which blocks are addressed
	leastBlock = 48
	mostBlock  = 384
	linkBytes  = 4
)

// arena has the blocks of streams. They are of few sizes: each of a stream is twice as large as the
// one before it, up to mostBlock.
type arena struct {
	slabs [][]byte
	used  int // bytes of the last slab
}

// block returns the address of a new block of size bytes.
func (a *arena) block(size int) uint32 {
	if len(a.slabs) == 0 || a.used+size > slabBytes {
		a.slabs, a.used = append(a.slabs, make([]byte, slabBytes)), 0
	}
	at := uint32((len(a.slabs)-1)*(slabBytes/unit) + a.used/unit)
	a.used += size
	return at
}

// at returns a block and what follows it in its slab.
func (a *arena) at(block uint32) []byte {
	return a.slabs[block/(slabBytes/unit)][block%(slabBytes/unit)*unit:]
}

// write appends bytes to a stream.
func (a *arena) write(x *tail, p []byte) {
	n := copy(a.at(x.last)[x.at:x.end], p)
	x.at += uint16(n)
	if n == len(p) {
		return
	}
	size := min(2*int(x.end), mostBlock)
	next := a.block(size)
	binary.LittleEndian.PutUint32(a.at(x.last), next)
	x.last, x.end = next, uint16(size)
	x.at = linkBytes + uint16(copy(a.at(next)[linkBytes:], p[n:]))
}

// bytes appends the bytes of a stream.
func (a *arena) bytes(dst []byte, x *tail) []byte {
	size := leastBlock
	for b := x.first; ; size = min(2*size, mostBlock) {
		block := a.at(b)
		if b == x.last {
			return append(dst, block[linkBytes:x.at]...)
		}
		dst = append(dst, block[linkBytes:size]...)
		b = binary.LittleEndian.Uint32(block)
	}
}
