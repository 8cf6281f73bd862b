package graphite

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxLong is the length of the longest integer, in bytes or digits; floats of more digits are
// infinite anyway.
const maxLong = 400

// line returns the bytes up to the end of the line, without it.
func (m *machine) line() ([]byte, error) {
	end := bytes.IndexByte(m.data[m.at:], '\n')
	if end < 0 {
		return nil, m.invalid("a line without an end")
	}
	b := m.data[m.at : m.at+end]
	m.at += end + 1
	return b, nil
}

// decimal reads a line with the number of a remembered value.
func (m *machine) decimal() (uint64, error) {
	b, err := m.line()
	if err != nil {
		return 0, err
	}
	key, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, m.invalid("%.20q is not the number of a value", b)
	}
	return key, nil
}

// numeric executes the opcodes of numbers. done is false for others.
func (m *machine) numeric(op byte) (done bool, err error) {
	var n uint64
	switch op {
	case 'J': // BININT
		if n, err = m.unsigned(4); err == nil {
			m.number(float64(int32(uint32(n))))
		}
	case 'K': // BININT1
		if n, err = m.unsigned(1); err == nil {
			m.number(float64(n))
		}
	case 'M': // BININT2
		if n, err = m.unsigned(2); err == nil {
			m.number(float64(n))
		}
	case 'G': // BINFLOAT
		var b []byte
		if b, err = m.bytes(8); err == nil {
			m.number(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.number(float64(0x89 - op))
	case 0x8a, 0x8b: // LONG1, LONG4
		var b []byte
		if b, err = m.sized(1 + 3*uint64(op-0x8a)); err == nil {
			err = m.long(b)
		}
	case 'I', 'L', 'F': // INT, LONG, FLOAT
		err = m.written(op)
	default:
		return false, nil
	}
	return true, err
}

// long pushes a little-endian integer in two's complement.
func (m *machine) long(b []byte) error {
	if len(b) > maxLong {
		return m.invalid("an integer of %d bytes, more than %d", len(b), maxLong)
	}
	digits := slices.Clone(b)
	slices.Reverse(digits)
	v := new(big.Int).SetBytes(digits)
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	f, _ := new(big.Float).SetInt(v).Float64()
	m.number(f)
	return nil
}

// written pushes a number that stands in a line of its own.
func (m *machine) written(op byte) error {
	b, err := m.line()
	if err != nil {
		return err
	}
	if len(b) > maxLong {
		return m.invalid("a number of %d digits, more than %d", len(b), maxLong)
	}
	text := string(b)
	if op == 'L' {
		text = strings.TrimSuffix(text, "L")
	}
	if op != 'F' && strings.Trim(text, "+-0123456789") != "" {
		return m.invalid("%.20q is not an integer", b)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && v == 0 {
		return m.invalid("%.20q is not a number", b)
	}
	m.number(v)
	return nil
}
