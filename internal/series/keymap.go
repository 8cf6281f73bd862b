package series

import "github.com/zeebo/xxh3"

// Key is a 128-bit hash that identifies the bytes it was computed from. Keys of outside data are
// computed with a seed that senders do not know, so that equal keys can be treated as equal bytes.
type Key = xxh3.Uint128

// keyMap is an insert-only open-addressing map from Key to Ref with linear probing. The zero Key is
// valid. References are stored plus one, because 0 marks an empty slot.
type keyMap struct {
	slots []slot
	n     int
}

type slot struct {
	key Key
	ref uint32 // Ref + 1; 0 = empty
}

const minSlots = 64

func (m *keyMap) get(k Key) (Ref, bool) {
	if m.n == 0 {
		return 0, false
	}
	mask := uint64(len(m.slots) - 1)
	for i := k.Lo & mask; ; i = (i + 1) & mask {
		s := &m.slots[i]
		if s.ref == 0 {
			return 0, false
		}
		if s.key == k {
			return Ref(s.ref - 1), true
		}
	}
}

// put stores ref under k. k must not be in the map.
func (m *keyMap) put(k Key, ref Ref) {
	if 4*(m.n+1) > 3*len(m.slots) {
		m.grow()
	}
	m.insert(slot{k, uint32(ref) + 1})
	m.n++
}

func (m *keyMap) grow() {
	old := m.slots
	m.slots = make([]slot, max(minSlots, 2*len(old)))
	for _, s := range old {
		if s.ref != 0 {
			m.insert(s)
		}
	}
}

func (m *keyMap) insert(s slot) {
	mask := uint64(len(m.slots) - 1)
	i := s.key.Lo & mask
	for m.slots[i].ref != 0 {
		i = (i + 1) & mask
	}
	m.slots[i] = s
}
