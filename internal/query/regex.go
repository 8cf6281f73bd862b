package query

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Bounds within which a pattern is given to DuckDB's RE2; beyond them its compiled program could exceed RE2's memory budget,
// which would be an error where Go has none.
const (
	maxPatternBytes  = 2048
	maxPatternCopies = 1000 // product of nested repetition counts
)

// portable renders a Prometheus regular expression (RE2 syntax as Go reads it, fully anchored, dot matches newline) for
// DuckDB's regexp_full_match, which is C++ RE2. The syntax tree is written out with nothing left to flags or to Unicode tables:
// only node kinds that mean the same in both are rendered; for all else ok is false and Go must match.
func portable(pattern string) (re string, ok bool) {
	tree, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	if !render(&b, tree, maxPatternCopies) || b.Len() > maxPatternBytes {
		return "", false
	}
	return b.String(), true
}

// render writes a node. copies is how often it may still be repeated.
func render(b *strings.Builder, n *syntax.Regexp, copies int) bool {
	switch n.Op {
	case syntax.OpEmptyMatch:
		b.WriteString("(?:)")
	case syntax.OpLiteral:
		return renderLiteral(b, n)
	case syntax.OpCharClass:
		return renderClass(b, n.Rune)
	case syntax.OpAnyChar:
		b.WriteString(`(?s:.)`)
	case syntax.OpAnyCharNotNL:
		b.WriteString(`[^\x{A}]`)
	case syntax.OpBeginText:
		b.WriteString(`\A`)
	case syntax.OpEndText:
		b.WriteString(`\z`)
	case syntax.OpCapture:
		return renderGroup(b, n.Sub, "", copies)
	case syntax.OpConcat:
		return renderGroup(b, n.Sub, "", copies)
	case syntax.OpAlternate:
		return renderGroup(b, n.Sub, "|", copies)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return renderRepeat(b, n, copies)
	default: // line anchors, word boundaries, and whatever Go may add
		return false
	}
	return true
}

// renderLiteral writes code points. Case folding is left to RE2 for ASCII letters only; other alphabets fold by tables of
// the Unicode version that each library was built with.
func renderLiteral(b *strings.Builder, n *syntax.Regexp) bool {
	fold := n.Flags&syntax.FoldCase != 0
	b.WriteString(pick(fold, "(?i:", "(?:"))
	for _, r := range n.Rune {
		if fold && r > 0x7f {
			return false
		}
		fmt.Fprintf(b, `\x{%X}`, r)
	}
	b.WriteByte(')')
	return true
}

// renderClass writes a character class given as pairs of first and last code point. Folding is already in the pairs.
func renderClass(b *strings.Builder, pairs []rune) bool {
	if len(pairs) == 0 { // matches nothing
		return false
	}
	b.WriteByte('[')
	for i := 0; i+1 < len(pairs); i += 2 {
		fmt.Fprintf(b, `\x{%X}-\x{%X}`, pairs[i], pairs[i+1])
		if b.Len() > maxPatternBytes {
			return false
		}
	}
	b.WriteByte(']')
	return true
}

func renderGroup(b *strings.Builder, subs []*syntax.Regexp, sep string, copies int) bool {
	b.WriteString("(?:")
	for i, sub := range subs {
		if i > 0 {
			b.WriteString(sep)
		}
		if !render(b, sub, copies) || b.Len() > maxPatternBytes {
			return false
		}
	}
	b.WriteByte(')')
	return true
}

// renderRepeat writes a repetition. Greed does not change whether the whole text matches.
func renderRepeat(b *strings.Builder, n *syntax.Regexp, copies int) bool {
	var suffix string
	switch n.Op {
	case syntax.OpStar:
		suffix = "*"
	case syntax.OpPlus:
		suffix = "+"
	case syntax.OpQuest:
		suffix = "?"
	default:
		most := max(n.Min, n.Max, 1)
		if most > copies {
			return false
		}
		copies /= most
		suffix = fmt.Sprintf("{%d,%d}", n.Min, n.Max)
		if n.Max < 0 {
			suffix = fmt.Sprintf("{%d,}", n.Min)
		}
	}
	if !renderGroup(b, n.Sub, "", copies) {
		return false
	}
	b.WriteString(suffix)
	return true
}
