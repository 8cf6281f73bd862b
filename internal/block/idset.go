package block

// idSet makes identifiers unique within a block: of label sets with equal hashes, each later one in
// block order gets the next free identifier.
type idSet struct {
	mask  uint64 // bits of the hash that count: all, but in tests
	taken map[uint64]struct{}
}

func (s *idSet) assign(hash uint64) uint64 {
	id := hash & s.mask
	for {
		if _, ok := s.taken[id]; !ok {
			s.taken[id] = struct{}{}
			return id
		}
		id++
	}
}
