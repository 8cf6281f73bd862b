// Package expression limits the length and depth of PromQL texts before they are parsed. Parsers,
// and functions that walk their trees, are recursive: deep nesting overflows the stack, which ends
// the process and cannot be handled.
package expression

import (
	"fmt"
	"iter"
	"strings"

	"github.com/promlake/promlake/internal/base/settings"
)

// Limits are the limits of the texts of one request. The tags are those of package settings. A zero
// field means its default.
type Limits struct {
	// MaxBytes bounds all texts together, MaxDepth each text: see Check.
	MaxBytes int `name:"query.max-expression-bytes" type:"bytes" default:"256KiB" min:"1" help:"Length of a query, or of all match[] of a request together." when:"Raise it if generated queries are refused."`
	MaxDepth int `name:"query.max-expression-depth" default:"4000" min:"1" help:"Depth to which brackets and operators may nest. A chain such as 1+1+1 is as deep as it is long." when:"Raise it if generated queries are refused."`
}

// Error reports a text that exceeds a limit.
type Error struct {
	Limit  string // the name of the limit
	Value  int
	Needed int // at least
	Flag   string
}

// Error implements error.
func (e *Error) Error() string {
	return settings.ForOperator(fmt.Sprintf("expression exceeds the limit of %d %s, it has at least %d; write it shorter, or raise %s", e.Value, e.Limit, e.Needed, e.Flag))
}

// BadQuery reports that the request is invalid: the HTTP API answers it with 400.
func (*Error) BadQuery() bool { return true }

// Check returns an *Error if the texts of a request are too long in total, or one is too deep. It
// takes linear time and almost no memory.
//
// The depth is at least the height of the parser's tree. Each open bracket counts, and within it
// each operator since its beginning or the last comma, because the tree of a chain such as 1-1-1 is
// as high as the chain is long. Unary operators and the brackets of subqueries count, too.
func (l Limits) Check(texts ...string) error {
	l = l.filled()
	n := 0
	for _, t := range texts {
		n += len(t)
	}
	if err := l.check(n, unrolled(texts)); err != nil {
		return err
	}
	for _, t := range texts {
		if tooDeep(t, l.MaxDepth) {
			return &Error{Limit: "levels of brackets and operators", Value: l.MaxDepth, Needed: l.MaxDepth + 1, Flag: "--query.max-expression-depth"}
		}
	}
	return nil
}

// check returns an *Error if n bytes, or patterns of so many bytes after expansion, are too many.
func (l Limits) check(n, unrolled int) error {
	if n > l.MaxBytes {
		return &Error{Limit: "bytes", Value: l.MaxBytes, Needed: n, Flag: "--query.max-expression-bytes"}
	}
	if limit := patternFactor * l.MaxBytes; unrolled > limit {
		return &Error{Limit: "bytes of patterns after expansion of repetitions", Value: limit, Needed: unrolled, Flag: "--query.max-expression-bytes, of which it is a multiple"}
	}
	return nil
}

// filled returns the limits with their defaults.
func (l Limits) filled() Limits {
	if l.MaxBytes == 0 || l.MaxDepth == 0 {
		settings.Fill(&l)
	}
	return l
}

// tooDeep reports whether a text has more than limit levels.
func tooDeep(text string, limit int) bool {
	var open []int // levels of each open bracket: itself, and the operators before it
	depth, here := 0, 0
	for i, token := range tokens(text) {
		switch c := token[0]; {
		case c == '(' || c == '{' || c == '[':
			here++ // x[1h:][1h:] is a chain, too
			depth++
			open, here = append(open, here), 0
		case c == ')' || c == '}' || c == ']':
			if len(open) > 0 {
				// After its end, a bracket counts as an operator of the surrounding level only if
				// it belongs to a subquery.
				depth -= here
				here = open[len(open)-1]
				open = open[:len(open)-1]
				if c != ']' {
					here--
					depth--
				}
			}
		case c == ',':
			depth -= here
			here = 0
		case strings.IndexByte("+-*/%^=!<>~", c) >= 0:
			// == and != count once
			if i == 0 || strings.IndexByte("=!<>", c) < 0 || strings.IndexByte("=!<>", text[i-1]) < 0 {
				here++
				depth++
			}
		case isOperator(token):
			here++
			depth++
		}
		if depth > limit {
			return true
		}
	}
	return false
}

// tokens yields the strings with their quotes, the words and all other bytes of a text, with their
// indexes. It leaves out comments.
func tokens(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := 0; i < len(text); {
			end := i + 1
			switch c := text[i]; {
			case isQuote(c):
				for end < len(text) && text[end] != c {
					if text[end] == '\\' && c != '`' {
						end++
					}
					end++
				}
				end = min(end+1, len(text))
			case c == '#':
				if end = strings.IndexAny(text[i:], "\r\n"); end < 0 {
					return
				}
				i += end
				continue
			case isWord(c):
				for end < len(text) && isWord(text[end]) {
					end++
				}
			}
			if !yield(i, text[i:end]) {
				return
			}
			i = end
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == ':' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isOperator reports whether a word is a binary operator.
func isOperator(word string) bool {
	switch len(word) {
	case 2, 3, 5, 6:
		switch strings.ToLower(word) {
		case "and", "or", "unless", "atan2":
			return true
		}
	}
	return false
}
