package expression

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

const (
	// patternFactor bounds how much longer than the texts their patterns may be after expansion of
	// all repetitions, which compiling a regular expression does.
	patternFactor = 4
	// maxRepetitions is Go's limit on the repetitions of a part of a regular expression; nested
	// ones are multiplied.
	maxRepetitions = 1000
	// classBytes is what a class of characters counts for that has hundreds of ranges, such as \pL,
	// and foldBytes a range for which (?i) makes the parser visit each of 100,000 characters.
	classBytes, foldBytes = 128, 32 << 10
	// Memory counts only what exceeds freeBytes, for which compiling takes patternMemory each.
	freeBytes, patternMemory = 64 << 10, 400
)

// CheckPatterns is Check for the regular expressions of a request that are not part of PromQL.
// Every pattern that comes with a request must pass it, or be a string in a text that passes Check,
// before it is compiled: compiling takes a kilobyte and several microseconds for each operator, and
// nothing can end it.
func (l Limits) CheckPatterns(patterns ...string) error {
	l, n, unrolled := l.filled(), 0, 0
	for _, p := range patterns {
		n, unrolled = n+len(p), unrolled+Weight(p)
	}
	return l.check(n, unrolled)
}

// Memory returns about how many bytes compiling the patterns of a request takes meanwhile, beyond
// what every request may take. The texts are PromQL.
func Memory(texts, patterns []string) int64 {
	n := unrolled(texts)
	for _, p := range patterns {
		n += Weight(p)
	}
	return int64(max(0, n-freeBytes)) * patternMemory
}

// unrolled returns an upper bound of the weight of the strings in texts, as if each were a regular
// expression.
func unrolled(texts []string) (n int) {
	for _, t := range texts {
		for _, s := range tokens(t) {
			if !isQuote(s[0]) {
				continue
			}
			if read, err := strutil.Unquote(s); err == nil { // "\x7b9}" is {9}
				s = read
			}
			n += Weight(s)
		}
	}
	return n
}

// Weight returns an upper bound of the length of a regular expression after expansion of its
// repetitions, where what takes longer to compile counts for more.
func Weight(pattern string) int {
	n := len(pattern) + classBytes*(strings.Count(pattern, `\p`)+strings.Count(pattern, `\P`))
	if strings.Contains(pattern, "(?") {
		for i := 1; i < len(pattern); i++ {
			if pattern[i-1] == '-' && (pattern[i] == '\\' || pattern[i] >= utf8.RuneSelf) {
				n += foldBytes
			}
		}
	}
	return n * repetitions(pattern)
}

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

// Text is an expression of which only the text is kept, in the parser's form. A parsed expression
// takes some hundred times as much memory. Upstream's functions that walk through expressions do
// not know it.
type Text struct {
	parser.Expr // a placeholder
	text        string
}

// placeholder answers what nobody asks a Text.
var placeholder parser.Expr = &parser.StringLiteral{}

// TextOf returns the text of a parsed expression.
func TextOf(e parser.Expr) *Text { return &Text{placeholder, e.String()} }

// String implements parser.Node.
func (t *Text) String() string { return t.text }

// The bytes of memory that a parsed expression takes at most, about.
const (
	wordBytes     = 300      // for each name, number or string
	operatorBytes = 110      // for each operator or bracket
	patternBytes  = 24       // for each byte of a pattern, with its repetitions written out
	patternsBytes = 500      // for each pattern
	unicodeBytes  = 20 << 10 // for each class of Unicode in a pattern
)

// ParsedBytes returns the memory in bytes that the expression of a text takes at most when it is
// parsed, about. It takes linear time.
func ParsedBytes(text string) (n int64) {
	for i, token := range tokens(text) {
		switch c := token[0]; {
		case isQuote(c):
			n += wordBytes
			if strings.HasSuffix(strings.TrimRight(text[:i], " \t\r\n"), "~") {
				classes := strings.Count(token, `\p`) + strings.Count(token, `\P`) // of Unicode
				n += patternsBytes + int64(repetitions(token))*int64(patternBytes*len(token)+unicodeBytes*classes)
			}
		case isWord(c):
			n += wordBytes
		case strings.IndexByte("+-*/%^=!<>([{", c) >= 0:
			n += operatorBytes
		}
	}
	return n + wordBytes + int64(len(text))
}
