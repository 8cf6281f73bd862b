package group

import "math/bits"

// rankSet is a set of ranks that numbers its members in ascending order. It is a bit map, so that a
// small batch among many known series costs a bit for each of them and not a counter.
type rankSet struct {
	words  []uint64
	before []uint32 // by word: members in the words before it; set by number
}

// reset empties the set and makes it one of ranks below a number.
func (s *rankSet) reset(ranks int) {
	n := (ranks + 63) / 64
	s.words, s.before = sized(s.words, n), sized(s.before, n)
	clear(s.words)
}

func (s *rankSet) add(rank uint32) { s.words[rank/64] |= 1 << (rank % 64) }

// number fixes the members' numbers and returns how many there are.
func (s *rankSet) number() int {
	n := 0
	for i, w := range s.words {
		s.before[i] = uint32(n)
		n += bits.OnesCount64(w)
	}
	return n
}

// index returns the number of a member.
func (s *rankSet) index(rank uint32) int {
	w := s.words[rank/64] & (1<<(rank%64) - 1)
	return int(s.before[rank/64]) + bits.OnesCount64(w)
}
