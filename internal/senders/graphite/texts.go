package graphite

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// textual executes the opcodes of texts and bytes. done is false for others.
func (m *machine) textual(op byte) (done bool, err error) {
	var b []byte
	switch op {
	case 'U', 0x8c, 'C': // SHORT_BINSTRING, SHORT_BINUNICODE, SHORT_BINBYTES
		b, err = m.sized(1)
	case 'T', 'X', 'B': // BINSTRING, BINUNICODE, BINBYTES
		b, err = m.sized(4)
	case 0x8d, 0x8e: // BINUNICODE8, BINBYTES8
		b, err = m.sized(8)
	case 'S': // STRING
		b, err = m.quoted()
	case 'V': // UNICODE
		b, err = m.escaped()
	default:
		return false, nil
	}
	if err == nil {
		m.push(pickled{Kind: pickledText, Text: b})
	}
	return true, err
}

// quoted reads a line with a text as Python 2 prints it.
func (m *machine) quoted() ([]byte, error) {
	b, err := m.line()
	if err != nil {
		return nil, err
	}
	if len(b) < 2 || b[0] != '\'' && b[0] != '"' || b[len(b)-1] != b[0] {
		return nil, m.invalid("a text without quotes")
	}
	b = b[1 : len(b)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b, nil
	}
	var out []byte
	for len(b) > 0 {
		c := b[0]
		b = b[1:]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		if len(b) == 0 {
			return nil, m.invalid("a text that ends with a backslash")
		}
		c, b = b[0], b[1:]
		switch c {
		case '\\', '\'', '"':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'x':
			v, err := hexOf(b, 2)
			if err != nil {
				return nil, m.invalid("a text with a bad escape")
			}
			out, b = append(out, byte(v)), b[2:]
		default:
			out = append(out, '\\', c)
		}
	}
	return out, nil
}

// escaped reads a line in Python's encoding raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX.
func (m *machine) escaped() ([]byte, error) {
	b, err := m.line()
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		size := 0
		if len(b) > 1 && b[0] == '\\' {
			switch b[1] {
			case 'u':
				size = 4
			case 'U':
				size = 8
			}
		}
		if size == 0 {
			out, b = utf8.AppendRune(out, rune(b[0])), b[1:]
			continue
		}
		v, err := hexOf(b[2:], size)
		if err != nil {
			return nil, m.invalid("a text with a bad escape")
		}
		out, b = utf8.AppendRune(out, rune(v)), b[2+size:]
	}
	return out, nil
}

// hexOf reads n hexadecimal digits.
func hexOf(b []byte, n int) (uint64, error) {
	if len(b) < n {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(string(b[:n]), 16, 32)
}
