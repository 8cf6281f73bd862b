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

// Object reads an object. It calls f at each value, which f reads. The name is valid until f
// returns.
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

// Pairs reads an array of one or more arrays of two integers, and calls f with each. It takes what
// is written without white space, of numbers of at most 15 digits that are not negative. Else it
// returns false, after calls that do not count, and has read nothing.
func (p *Parser) Pairs(f func(a, b int64)) bool {
	at := p.at
	for open := byte('['); at < len(p.text) && p.text[at] == open; open = ',' {
		var a, b int64
		var ok bool
		if at++; at == len(p.text) || p.text[at] != '[' {
			return false
		}
		if a, at, ok = p.digits(at+1, ','); ok {
			b, at, ok = p.digits(at, ']')
		}
		if !ok {
			return false
		}
		f(a, b)
	}
	if at == p.at || at == len(p.text) || p.text[at] != ']' {
		return false
	}
	p.at = at + 1
	return true
}

// digits parses the digits from a position on, and the byte after them. It returns where that ends.
func (p *Parser) digits(at int, after byte) (n int64, end int, ok bool) {
	from := at
	for ; at < len(p.text) && '0' <= p.text[at] && p.text[at] <= '9'; at++ {
		n = 10*n + int64(p.text[at]-'0')
	}
	if k := at - from; k == 0 || k > exact || k > 1 && p.text[from] == '0' || at == len(p.text) || p.text[at] != after {
		return 0, at, false
	}
	return n, at + 1, true
}

// String reads a string.
func (p *Parser) String() (string, error) {
	s, err := p.name()
	return strings.Clone(s), err
}

// Repeated reads a string that is probably equal to last, whose memory it takes then.
func (p *Parser) Repeated(last string) (string, error) {
	s, err := p.name()
	if s == last {
		return last, err
	}
	return strings.Clone(s), err
}

func (p *Parser) name() (string, error) {
	b, err := p.Bytes()
	return view(b), err
}

// Bytes reads a string that may be a part of the text.
func (p *Parser) Bytes() ([]byte, error) {
	if p.Peek() != '"' {
		return nil, p.Unexpected("a string")
	}
	text := p.text[p.at+1:]
	if n := bytes.IndexByte(text, '"'); n >= 0 && bytes.IndexByte(text[:n], '\\') < 0 {
		p.at += n + 2
		return text[:n], nil
	}
	var s string
	err := p.Decode(&s)
	return []byte(s), err
}

// Decode reads a value as encoding/json does.
func (p *Parser) Decode(v any) error {
	raw, err := p.Raw()
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	return err
}

// Skip skips a value, and checks only where it ends.
func (p *Parser) Skip() error {
	_, err := p.Raw()
	return err
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
