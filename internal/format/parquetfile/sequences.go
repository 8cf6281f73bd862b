package parquetfile

import (
	"encoding/binary"
	"math/bits"
)

// sequence is a part of a block of a zstd frame: literals, then a match, which repeats what is some
// bytes before it.
type sequence struct{ literals, match, distance uint32 } // bytes

const (
	minMatch = 3
	// repeated is the number of distances that are written as one of the last ones, which no encoder
	// needs to do: others are written as so much more.
	repeated = 3
	// fewSequences is the number of sequences of a block from which it takes two bytes.
	fewSequences = 128
	// Lengths from these on have as symbol the number of their bits, and this.
	longLiterals, literalsShift = 64, 18
	longMatch, matchShift       = 128, 35
)

// Additional bits of the symbols of lengths of literals and of matches, and the symbols of short
// ones.
var (
	literalsBits   = [36]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	matchBits      = [53]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	literalsSymbol = symbolsOf(longLiterals, literalsBits[:])
	matchSymbol    = symbolsOf(longMatch, matchBits[:])
)

// symbolsOf returns the symbols of the first n lengths.
func symbolsOf(n int, extra []uint8) []uint8 {
	out := make([]uint8, 0, n)
	for symbol, b := range extra {
		for range min(1<<b, n-len(out)) {
			out = append(out, uint8(symbol))
		}
	}
	return out
}

// symbol returns the symbol of a length.
func symbol(short []uint8, shift int, n uint32) uint8 {
	if int(n) < len(short) {
		return short[n]
	}
	return uint8(bits.Len32(n) + shift)
}

// The predefined distributions of symbols: the number of states of each; -1 is one state, in which
// all bits are written.
var (
	literalsStates = newStates(6, []int8{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1})
	matchStates    = newStates(6, []int8{
		1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		-1, -1, -1, -1, -1, -1, -1,
	})
	distanceStates = newStates(5, []int8{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1})
)

// states encodes symbols of a distribution as the ways between states: with each symbol some of the
// lowest bits of the state are written, and the others determine the next one.
type states struct {
	log     uint32 // of the number of states
	next    []uint16
	symbols []symbolStates
}

type symbolStates struct {
	bits uint32 // added to the state: 65,536 times the number of bits that are written, and more
	next int32  // added to what is left of the state: where the next one is
}

func newStates(log uint32, counts []int8) *states {
	size := 1 << log
	s := &states{log: log, next: make([]uint16, size), symbols: make([]symbolStates, len(counts))}
	of, end := make([]int, size), size // the symbol of each state, by the rule of the format
	for symbol, n := range counts {
		if n < 0 {
			end--
			of[end] = symbol
		}
	}
	for at, symbol := 0, 0; symbol < len(counts); symbol++ {
		for range counts[symbol] {
			of[at] = symbol
			for at = (at + size>>1 + size>>3 + 3) % size; at >= end; {
				at = (at + size>>1 + size>>3 + 3) % size
			}
		}
	}
	at := make([]int, len(counts)) // where the next state of a symbol goes
	first := 0
	for symbol, n := range counts {
		n := int(max(n, -n))
		most := log + 1 - uint32(bits.Len(uint(n)))
		s.symbols[symbol] = symbolStates{most<<16 - uint32(n)<<most, int32(first - n)}
		at[symbol] = first
		first += n
	}
	for state, symbol := range of {
		s.next[at[symbol]] = uint16(size + state)
		at[symbol]++
	}
	return s
}

// begin returns the state after the last symbol, which is encoded first.
func (s *states) begin(symbol uint8) uint32 {
	t := &s.symbols[symbol]
	n := (t.bits + 1<<15) >> 16
	return uint32(s.next[int32((n<<16-t.bits)>>n)+t.next])
}

// put writes a symbol, and returns the next state.
func (s *states) put(w *bitWriter, state uint32, symbol uint8) uint32 {
	t := &s.symbols[symbol]
	n := (state + t.bits) >> 16
	w.add(state, n)
	return uint32(s.next[int32(state>>n)+t.next])
}

// bitWriter appends bits, the lowest ones first.
type bitWriter struct {
	out  []byte
	bits uint64
	n    uint32 // bits that are not in out yet
}

// add adds the n lowest bits of v. There is room for 56 bits after flush.
func (w *bitWriter) add(v, n uint32) {
	w.bits |= uint64(v&(1<<n-1)) << w.n
	w.n += n
}

// flush appends whole bytes.
func (w *bitWriter) flush() {
	bytes := w.n / 8
	w.out = binary.LittleEndian.AppendUint64(w.out, w.bits)
	w.out = w.out[:len(w.out)-8+int(bytes)]
	w.bits >>= 8 * bytes
	w.n %= 8
}

// end appends a bit that ends the others, and the rest of its byte.
func (w *bitWriter) end() []byte {
	w.add(1, 1)
	w.n += 7
	w.flush()
	return w.out
}

// appendSequences appends the sequences of a block, at most 32,511: their number, the distributions
// of their symbols, which are the predefined ones, and symbols and additional bits from the last
// sequence to the first one.
//
// Source: RFC 8878, 3.1.1.3.2 and 4.1.
func appendSequences(dst []byte, all []sequence) []byte {
	n := len(all)
	if n < fewSequences {
		dst = append(dst, byte(n))
	} else {
		dst = append(dst, byte(n>>8+fewSequences), byte(n))
	}
	if n == 0 {
		return dst
	}
	w := bitWriter{out: append(dst, 0)}
	var literals, match, distance uint32 // states
	for i := n - 1; i >= 0; i-- {
		s := &all[i]
		length, far := s.match-minMatch, s.distance+repeated
		l, m, d := symbol(literalsSymbol, literalsShift, s.literals), symbol(matchSymbol, matchShift, length), uint8(bits.Len32(far)-1)
		if i == n-1 {
			literals, match, distance = literalsStates.begin(l), matchStates.begin(m), distanceStates.begin(d)
		} else {
			distance = distanceStates.put(&w, distance, d)
			match = matchStates.put(&w, match, m)
			literals = literalsStates.put(&w, literals, l)
		}
		w.add(s.literals, uint32(literalsBits[l])) // at most 17 bits of states, and 7, and 16
		w.flush()
		w.add(length, uint32(matchBits[m]))
		w.add(far, uint32(d))
		w.flush()
	}
	w.add(match, matchStates.log)
	w.add(distance, distanceStates.log)
	w.add(literals, literalsStates.log)
	return w.end()
}
