package expression

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

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
	for i := 0; i < len(text); {
		next := i + 1
		switch c := text[i]; {
		case c == '"' || c == '\'' || c == '`':
			next = afterString(text, i)
			n += wordBytes
			if strings.HasSuffix(strings.TrimRight(text[:i], " \t\r\n"), "~") {
				pattern := text[i:next]
				classes := strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`) // of Unicode
				n += patternsBytes + int64(repetitions(pattern))*int64(patternBytes*len(pattern)+unicodeBytes*classes)
			}
		case c == '#':
			next = afterLine(text, i)
		case isWord(c):
			for next < len(text) && isWord(text[next]) {
				next++
			}
			n += wordBytes
		case strings.IndexByte("+-*/%^=!<>([{", c) >= 0:
			n += operatorBytes
		}
		i = next
	}
	return n + wordBytes + int64(len(text))
}
