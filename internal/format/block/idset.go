package block

import (
	"math/bits"
	"math/rand/v2"
)

// idSet makes identifiers unique within a block: of label sets with equal hashes, each later one in
// block order gets the next free identifier. It is a hash table with linear probing. The place of
// an identifier depends on a random number, so that a sender cannot choose label sets whose places
// collide.
type idSet struct {
	mask  uint64   // bits of the hash that count: all, but in tests
	slots []uint64 // identifiers plus one; 0 = empty
	n     int
	full  bool // the largest identifier, which has no place in slots, is taken
	odd   uint64
}

// newIDSet returns a set with room for n identifiers.
func newIDSet(mask uint64, n int) idSet {
	slots := 64
	for 4*n > 3*slots {
		slots *= 2
	}
	return idSet{mask: mask, slots: make([]uint64, slots), odd: rand.Uint64() | 1}
}

func (s *idSet) assign(hash uint64) uint64 {
	id := hash & s.mask
	for !s.take(id) {
		id++
	}
	return id
}

// take adds an identifier and reports whether it was free.
func (s *idSet) take(id uint64) bool {
	if id+1 == 0 {
		free := !s.full
		s.full = true
		return free
	}
	at := s.place(id)
	if s.slots[at] != 0 {
		return false
	}
	s.slots[at] = id + 1
	s.n++
	if 4*s.n > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, 2*len(old))
		for _, x := range old {
			if x != 0 {
				s.slots[s.place(x-1)] = x
			}
		}
	}
	return true
}

// place returns the slot of an identifier, or the empty one that it would have.
func (s *idSet) place(id uint64) uint64 {
	last := uint64(len(s.slots) - 1)
	at := id * s.odd >> (64 - uint(bits.Len64(last)))
	for s.slots[at] != 0 && s.slots[at] != id+1 {
		at = (at + 1) & last
	}
	return at
}
