package usage

import "regexp/syntax"

const (
	// instructionBytes is about what an instruction of a compiled pattern takes in memory, with its
	// share of the tables of a match.
	instructionBytes = 128
	// maxInstructions bounds the count, which repetitions multiply.
	maxInstructions = 1 << 32
)

// patternBytes is about what a compiled pattern takes in memory. A short pattern can be large:
// (abcdefghij){1000} is 10,000 instructions.
func patternBytes(text string) int64 {
	if len(text) > maxLength {
		return 0 // it is not kept
	}
	re, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	if err != nil {
		return 0 // no query has such a pattern
	}
	return instructions(re) * instructionBytes
}

// instructions is at least about the number of instructions of a pattern, at most maxInstructions.
func instructions(re *syntax.Regexp) int64 {
	n := 1 + int64(len(re.Rune))
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), maxInstructions)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*int64(max(re.Min, re.Max, 1)), maxInstructions)
	}
	return n
}
