package usage

import "regexp/syntax"

const (
	// maxInstructions is the number of instructions beyond which a pattern is not counted. A short
	// pattern can be large: (abcdefghij){1000} has 10,000. A report compiles one pattern at a time.
	maxInstructions = 20_000
	// endless bounds the count, which repetitions multiply.
	endless = 1 << 32
)

// tooLarge reports whether a compiled pattern would take more than a few megabytes, or the text is
// none.
func tooLarge(text string) bool {
	re, err := syntax.Parse(text, syntax.Perl|syntax.DotNL)
	return err != nil || instructions(re) > maxInstructions
}

// instructions is at least about the number of instructions of a pattern, at most endless.
func instructions(re *syntax.Regexp) int64 {
	n := 1 + int64(len(re.Rune))
	for _, sub := range re.Sub {
		n = min(n+instructions(sub), endless)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*int64(max(re.Min, re.Max, 1)), endless)
	}
	return n
}
