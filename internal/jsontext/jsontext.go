// Package jsontext reads JSON from left to right, in place, for formats whose numbers are most of
// the text.
package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"
)

// Parser reads one text.
type Parser struct {
	text []byte
	at   int
}

// New returns a parser of a text, which does not change while it is read.
func New(text []byte) *Parser { return &Parser{text: text} }

// Peek skips white space and returns the next byte, 0 at the end.
func (p *Parser) Peek() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *Parser) take(c byte) bool {
	if p.Peek() != c {
		return false
	}
	p.at++
	return true
}

// Unexpected is the error for what stands where something else should.
func (p *Parser) Unexpected(want string) error {
	if p.Peek() == 0 {
		return fmt.Errorf("the text ends where %s is expected", want)
	}
	return fmt.Errorf("%q at byte %d, where %s is expected", p.text[p.at], p.at+1, want)
}

// Object reads an object. It calls f at each value, which f reads. The name is valid until f returns.
func (p *Parser) Object(f func(name string) error) error {
	if !p.take('{') {
		return p.Unexpected("{")
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return p.Unexpected(", or }")
		}
		name, err := p.name()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.Unexpected(":")
		}
		if err := f(name); err != nil {
			return err
		}
	}
	return nil
}

// End returns an error unless the text ends here.
func (p *Parser) End() error {
	if p.Peek() != 0 {
		return p.Unexpected("the end")
	}
	return nil
}

// Array reads an array. It calls f at each element, which f reads.
func (p *Parser) Array(f func() error) error {
	if !p.take('[') {
		return p.Unexpected("[")
	}
	for first := true; !p.take(']'); first = false {
		if !first && !p.take(',') {
			return p.Unexpected(", or ]")
		}
		p.Peek()
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// String reads a string.
func (p *Parser) String() (string, error) {
	s, err := p.name()
	return strings.Clone(s), err
}

// name reads a string that may be a part of the text.
func (p *Parser) name() (string, error) {
	if p.Peek() != '"' {
		return "", p.Unexpected("a string")
	}
	raw, err := p.Raw()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return view(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("invalid string: %w", err)
	}
	return s, nil
}

// Raw returns the bytes of a value. Of an object or array it checks only where it ends.
func (p *Parser) Raw() ([]byte, error) {
	p.Peek()
	from, depth := p.at, 0
	if n := flat(p.text[from:]); n > 0 {
		p.at += n
		return p.text[from:p.at], nil
	}
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			if !p.skipString() {
				return nil, errEnd
			}
			if depth == 0 {
				return p.text[from:p.at], nil
			}
			continue
		case c == '{', c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			if p.at == from {
				return nil, p.Unexpected("a value")
			}
			return p.text[from:p.at], nil
		case c == '}', c == ']':
			if depth--; depth == 0 {
				p.at++
				return p.text[from:p.at], nil
			}
		}
		p.at++
	}
	return nil, errEnd
}

// flat returns the length of the object that a text begins with, if nothing in it needs a closer
// look: no other object, and no escaped quote. Else it returns 0.
func flat(text []byte) int {
	if len(text) == 0 || text[0] != '{' {
		return 0
	}
	n := bytes.IndexByte(text, '}') + 1
	if n == 0 || bytes.IndexByte(text[1:n], '{') >= 0 || bytes.IndexByte(text[:n], '\\') >= 0 || bytes.Count(text[:n], []byte{'"'})%2 != 0 {
		return 0
	}
	return n
}

var errEnd = errors.New("the text ends within a value")

// skipString skips the string that begins here. It reports whether the string ends.
func (p *Parser) skipString() bool {
	from := p.at
	for {
		n := bytes.IndexByte(p.text[p.at+1:], '"')
		if n < 0 {
			p.at = len(p.text)
			return false
		}
		p.at += 1 + n
		escapes := 0
		for p.text[p.at-1-escapes] == '\\' && p.at-1-escapes > from {
			escapes++
		}
		if escapes%2 == 0 {
			p.at++
			return true
		}
	}
}

// number returns the bytes of a number.
func (p *Parser) number() []byte {
	from := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return p.text[from:p.at]
		}
	}
	return p.text[from:p.at]
}

// exact is the largest number of digits whose numbers are exact as a float64.
const exact = 15

// small parses up to exact digits, with or without a sign.
func small(digits []byte) (n int64, ok bool) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > exact || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		return -n, n != 0 // -0 is not 0
	}
	return n, true
}

// Integer reads an integer. The error names what was wanted.
func (p *Parser) Integer(want string) (int64, error) {
	from := p.at
	digits := p.number()
	if n, ok := small(digits); ok {
		return n, nil
	}
	n, err := strconv.ParseInt(view(digits), 10, 64)
	if err != nil {
		p.at = from
		return 0, p.Unexpected(want)
	}
	return n, nil
}

// Float reads a number. The error names what was wanted.
func (p *Parser) Float(want string) (float64, error) {
	p.Peek()
	from := p.at
	digits := p.number()
	if n, ok := small(digits); ok {
		return float64(n), nil
	}
	// What Go takes beyond JSON's numbers, such as +1 and 1., is harmless.
	v, err := strconv.ParseFloat(view(digits), 64)
	if err != nil {
		p.at = from
		return 0, p.Unexpected(want)
	}
	return v, nil
}

// view is a string of bytes that do not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
