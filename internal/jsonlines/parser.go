package jsonlines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/prometheus/prometheus/model/value"
)

// parser reads JSON from left to right, in place.
type parser struct {
	text []byte
	at   int
}

// peek skips white space and returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

// unexpected is the error for what stands where something else should.
func (p *parser) unexpected(want string) error {
	if p.peek() == 0 {
		return fmt.Errorf("the line ends where %s is expected", want)
	}
	return fmt.Errorf("%q at byte %d, where %s is expected", p.text[p.at], p.at+1, want)
}

// object reads an object that is all of the text. It calls f at each value.
func (p *parser) object(f func(name string) error) error {
	if !p.take('{') {
		return p.unexpected("{")
	}
	for first := true; !p.take('}'); first = false {
		if !first && !p.take(',') {
			return p.unexpected(", or }")
		}
		name, err := p.string()
		if err != nil {
			return err
		}
		if !p.take(':') {
			return p.unexpected(":")
		}
		if err := f(name); err != nil {
			return err
		}
	}
	if p.peek() != 0 {
		return p.unexpected("the end of the line")
	}
	return nil
}

// array reads an array. It calls f at each element.
func (p *parser) array(f func() error) error {
	if !p.take('[') {
		return p.unexpected("[")
	}
	for first := true; !p.take(']'); first = false {
		if !first && !p.take(',') {
			return p.unexpected(", or ]")
		}
		p.peek()
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// string reads a string.
func (p *parser) string() (string, error) {
	if p.peek() != '"' {
		return "", p.unexpected("a string")
	}
	raw, err := p.raw()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("invalid string: %w", err)
	}
	return s, nil
}

// raw returns the bytes of a value. Of an object or array it checks only where it ends.
func (p *parser) raw() ([]byte, error) {
	p.peek()
	from, depth, text := p.at, 0, false
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case text && c == '\\':
			p.at++
		case c == '"':
			if text = !text; !text && depth == 0 {
				p.at++
				return p.text[from:p.at], nil
			}
		case text:
		case c == '{', c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			if p.at == from {
				return nil, p.unexpected("a value")
			}
			return p.text[from:p.at], nil
		case c == '}', c == ']':
			if depth--; depth == 0 {
				p.at++
				return p.text[from:p.at], nil
			}
		}
	}
	return nil, errors.New("the line ends within a value")
}

// number returns the bytes of a number.
func (p *parser) number() []byte {
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

// integer reads an integer.
func (p *parser) integer() (int64, error) {
	from := p.at
	digits := p.number()
	if n, ok := small(digits); ok {
		return n, nil
	}
	n, err := strconv.ParseInt(view(digits), 10, 64)
	if err != nil {
		p.at = from
		return 0, p.unexpected("an integer of milliseconds")
	}
	return n, nil
}

var stale = math.Float64frombits(value.StaleNaN)

// value reads a value of a sample.
func (p *parser) value() (float64, error) {
	from := p.at
	switch p.peek() {
	case 'n':
		if raw, err := p.raw(); err == nil && string(bytes.TrimSpace(raw)) == "null" {
			return stale, nil
		}
	case '"':
		s, err := p.string()
		if err != nil {
			return 0, err
		}
		switch s {
		case "NaN", "nan":
			return math.NaN(), nil
		case "Infinity", "infinity", "Inf", "inf", "+Inf":
			return math.Inf(1), nil
		case "-Infinity", "-infinity", "-Inf", "-inf":
			return math.Inf(-1), nil
		}
	default:
		digits := p.number()
		if n, ok := small(digits); ok {
			return float64(n), nil
		}
		// What Go takes beyond JSON's numbers, such as +1 and 1., is harmless.
		if v, err := strconv.ParseFloat(view(digits), 64); err == nil {
			return v, nil
		}
	}
	p.at = from
	return 0, p.unexpected(`a number, "NaN", "Infinity", "-Infinity" or null`)
}

// view is a string of bytes that do not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
