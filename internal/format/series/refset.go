package series

// refSet is an insert-only set of references, or of other indexes, with linear probing. A reference
// is found by 32 bits of a hash of what it stands for, which the caller compares: the set itself
// does not hold it.
type refSet struct {
	slots []hashed
	n     int
}

// hashed is a reference plus one, because 0 marks an empty slot, and its hash. Its slot is the
// first free one from the hash on, so a larger set needs nothing else to place it.
type hashed struct{ hash, ref uint32 }

const minSlots = 64

// find returns the reference with this hash for which is reports true.
func (s *refSet) find(hash uint32, is func(Ref) bool) (Ref, bool) {
	if s.n == 0 {
		return 0, false
	}
	mask := uint32(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		switch x := s.slots[i]; {
		case x.ref == 0:
			return 0, false
		case x.hash == hash && is(Ref(x.ref-1)):
			return Ref(x.ref - 1), true
		}
	}
}

// put adds a reference that is not in the set.
func (s *refSet) put(hash uint32, ref Ref) {
	if 4*(s.n+1) > 3*len(s.slots) {
		s.grow()
	}
	s.insert(hashed{hash, uint32(ref) + 1})
	s.n++
}

func (s *refSet) grow() {
	old := s.slots
	s.slots = make([]hashed, max(minSlots, 2*len(old)))
	for _, x := range old {
		if x.ref != 0 {
			s.insert(x)
		}
	}
}

func (s *refSet) insert(x hashed) {
	mask := uint32(len(s.slots) - 1)
	i := x.hash & mask
	for s.slots[i].ref != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = x
}
