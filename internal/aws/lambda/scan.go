package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// scanner decodes a JSON document in one pass without copying. encoding/json checks every byte of a
// body several times, which for 6 MB takes longer than all later work. For a valid document scanner
// returns the same values as encoding/json; it may accept an invalid one if the error is in a
// skipped value. encoding/json decodes strings with escapes and small values.
type scanner struct {
	b []byte
	i int // index of the next byte
}

// errJSON reports a payload that is no JSON document.
var errJSON = errors.New("invalid JSON")

func (s *scanner) fail(want string) error {
	if s.i >= len(s.b) {
		return fmt.Errorf("%w: want %s at byte %d, got the end", errJSON, want, s.i)
	}
	return fmt.Errorf("%w: want %s at byte %d, got %q", errJSON, want, s.i, s.b[s.i])
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take consumes c after white space; it returns false if the next byte is another.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.i >= len(s.b) {
		return false
	}
	s.i++
	return true
}

// object calls f for each member of an object; f consumes the member's value.
func (s *scanner) object(f func(key string) error) error {
	if !s.take('{') {
		return s.fail("an object")
	}
	if s.take('}') {
		return nil
	}
	for {
		key, err := s.str()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.fail("a colon")
		}
		if err := f(key); err != nil {
			return err
		}
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.fail("a comma or the end of the object")
		}
	}
}

// array calls f for each element of an array; f consumes the element.
func (s *scanner) array(f func() error) error {
	if !s.take('[') {
		return s.fail("an array")
	}
	if s.take(']') {
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.fail("a comma or the end of the array")
		}
	}
}

// quoted is a string as it is in the document, without its quotes.
type quoted struct {
	raw     []byte // part of the document
	escaped bool   // contains a backslash
}

// quoted consumes a string.
func (s *scanner) quoted() (quoted, error) {
	if !s.take('"') {
		return quoted{}, s.fail("a string")
	}
	rest := s.b[s.i:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		s.i = len(s.b)
		return quoted{}, s.fail("the end of a string")
	}
	at := bytes.IndexByte(rest[:end], '\\')
	if at < 0 {
		s.i += end + 1
		return quoted{raw: rest[:end]}, nil
	}
	// After the first backslash every byte must be checked, because the quote found above may be
	// escaped.
	for i := at; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			s.i += i + 1
			return quoted{raw: rest[:i], escaped: true}, nil
		}
	}
	s.i = len(s.b)
	return quoted{}, s.fail("the end of a string")
}

// bytes returns the value of a string that contains only ASCII, or whose reader validates it.
// Without escapes it is part of the document.
func (q quoted) bytes() ([]byte, error) {
	if !q.escaped {
		return q.raw, nil
	}
	v, err := q.decode()
	return []byte(v), err
}

func (q quoted) decode() (v string, err error) {
	token := make([]byte, 0, len(q.raw)+2)
	token = append(append(append(token, '"'), q.raw...), '"')
	if err := json.Unmarshal(token, &v); err != nil {
		return "", fmt.Errorf("%w: %w", errJSON, err)
	}
	return v, nil
}

// str consumes a string and returns its value, which does not alias the document.
func (s *scanner) str() (string, error) {
	q, err := s.quoted()
	if err != nil || !q.escaped && utf8.Valid(q.raw) {
		return string(q.raw), err
	}
	return q.decode()
}

// optional consumes a string or null, and returns "" for null.
func (s *scanner) optional() (string, error) {
	if s.peek() == '"' {
		return s.str()
	}
	var v string
	return v, s.decode(&v)
}

// decode consumes any value and decodes it as encoding/json does.
func (s *scanner) decode(v any) error {
	token, err := s.raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(token, v); err != nil {
		return fmt.Errorf("%w: %w", errJSON, err)
	}
	return nil
}

// raw consumes any value and returns its bytes, which alias the document.
func (s *scanner) raw() ([]byte, error) {
	c := s.peek()
	start, depth := s.i, 0
	for {
		switch c {
		case '"':
			if _, err := s.quoted(); err != nil {
				return nil, err
			}
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth--; depth < 0 {
				return nil, s.fail("a value")
			}
			s.i++
		case ',', ':':
			if depth == 0 {
				return nil, s.fail("a value")
			}
			s.i++
		case 0:
			return nil, s.fail("a value")
		default:
			s.literal()
		}
		if depth == 0 {
			return s.b[start:s.i], nil
		}
		c = s.peek()
	}
}

// literal consumes a number, true, false or null, or an invalid token in place of one.
func (s *scanner) literal() {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']', '{', '[', '"':
			return
		}
	}
}

// skip consumes any value.
func (s *scanner) skip() error {
	_, err := s.raw()
	return err
}

// end checks that the document ends here.
func (s *scanner) end() error {
	s.peek()
	if s.i < len(s.b) {
		return s.fail("the end")
	}
	return nil
}
