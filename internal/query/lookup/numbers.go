package lookup

import "slices"

// numbers is a set of numbers of objects, a bit for each. Objects that are read together mostly have
// numbers that lie together. It may forget numbers if they do not.
type numbers struct {
	first uint32   // of the first word: a multiple of 64
	words []uint64 // number i is bit i % 64
	n     int      // of numbers
}

// maxWords bounds a set: 4 KiB, for numbers of which the last is at most 32,768 after the first.
const maxWords = 512

func (s *numbers) has(i uint32) bool {
	word := int64(i/64) - int64(s.first/64)
	return word >= 0 && word < int64(len(s.words)) && s.words[word]&(1<<(i%64)) != 0
}

// add adds a number, which must not be in the set. It returns the growth of the memory (bytes).
func (s *numbers) add(i uint32) (bytes int64) {
	before := cap(s.words)
	word := int64(i/64) - int64(s.first/64)
	if len(s.words) == 0 || word >= maxWords || int64(len(s.words))-word > maxWords {
		*s, word = numbers{first: i / 64 * 64, words: s.words[:0]}, 0
	}
	if word < 0 {
		s.words = slices.Insert(s.words, 0, make([]uint64, -word)...)
		s.first, word = i/64*64, 0
	}
	for int64(len(s.words)) <= word {
		s.words = append(s.words, 0)
	}
	s.words[word] |= 1 << (i % 64)
	s.n++
	return 8 * int64(cap(s.words)-before)
}
