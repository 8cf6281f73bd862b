package expression

import "strconv"

const (
	// patternFactor bounds how much longer than the texts their patterns may be after expansion of
	// all repetitions, which compiling a regular expression does.
	patternFactor = 16
	// maxRepetitions is Go's limit on the repetitions of a part of a regular expression; nested
	// ones are multiplied.
	maxRepetitions = 1000
)

// unrolled returns an upper bound of the length of the strings in texts, as if each were a regular
// expression, after expansion of their repetitions.
func unrolled(texts []string) (n int) {
	for _, t := range texts {
		for i := 0; i < len(t); {
			switch c := t[i]; c {
			case '"', '\'', '`':
				end := afterString(t, i)
				n += Unrolled(t[i:end])
				i = end
			case '#':
				i = afterLine(t, i) + 1
			default:
				i++
			}
		}
	}
	return n
}

// Unrolled returns an upper bound of the length of a regular expression after expansion of its
// repetitions, which compiling it does.
func Unrolled(pattern string) int { return len(pattern) * repetitions(pattern) }

// repetitions returns an upper bound of how often a part of a regular expression is repeated: the
// product of all its repetition counts, at most maxRepetitions.
func repetitions(pattern string) int {
	product := 1
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '{' {
			continue
		}
		most := 0
		for i++; i < len(pattern) && (pattern[i] == ',' || pattern[i] >= '0' && pattern[i] <= '9'); {
			from := i
			for i < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9' {
				i++
			}
			if k, err := strconv.Atoi(pattern[from:i]); err == nil {
				most = max(most, min(k, maxRepetitions))
			}
			if i < len(pattern) && pattern[i] == ',' {
				i++
			}
		}
		i-- // it may begin another one
		if product *= max(1, most); product >= maxRepetitions {
			return maxRepetitions
		}
	}
	return product
}
