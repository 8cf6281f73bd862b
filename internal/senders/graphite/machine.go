package graphite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrPickle marks data that is no pickle of plain data, or exceeds a limit.
var ErrPickle = errors.New("invalid pickle")

// pickledKind is the kind of a Python object.
type pickledKind uint8

const (
	_ pickledKind = iota // None
	pickledNumber
	pickledText
	pickledSequence // a tuple or a list
	pickledMark
)

// pickled is a Python object.
type pickled struct {
	Kind   pickledKind
	Number float64 // of an integer, a float or a truth value
	Text   []byte
	items  *[]pickled // shared by all values that stand for one list
}

// Items are those of a tuple or a list, which may contain itself.
func (v pickled) Items() []pickled {
	if v.items == nil {
		return nil
	}
	return *v.items
}

const (
	// maxValues is how many values a pickle may make, in lists, tuples, and the memo. They take 64
	// bytes each at most twice, since slices grow.
	maxValues = 1 << 19
	// maxLong is the length of the longest integer, in bytes or digits; floats of more digits are
	// infinite anyway.
	maxLong = 400
)

// machine is the stack machine of Python's pickle format. It reads plain data: numbers, texts,
// tuples and lists. It executes nothing: opcodes that make objects of classes, or call functions,
// are refused. It knows the opcodes of all protocols (0 to 5) for such data. The format is that of
// Python's Lib/pickletools.py. After an error, which is the first one, it reads zeros.
type machine struct {
	data  []byte
	at    int
	stack []pickled
	memo  map[uint64]pickled
	left  int // values that may still be made
	err   error
}

// unpickle returns the object of a pickle. Its texts are parts of data where that is possible.
func unpickle(data []byte) (pickled, error) {
	m := machine{data: data, left: maxValues, memo: map[uint64]pickled{}}
	for op := byte(m.unsigned(1)); op != '.' && m.err == nil; op = byte(m.unsigned(1)) {
		if m.step(op); m.err == nil && m.left < 0 {
			m.err = fmt.Errorf("%w: it has more than %d values: send fewer points in a message", ErrPickle, maxValues)
		}
	}
	v := m.pop(1)[0]
	if v.Kind == pickledMark {
		m.fail("the stack ends with a mark")
	}
	return v, m.err
}

func (m *machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("%w: %s at byte %d", ErrPickle, fmt.Sprintf(format, args...), m.at)
	}
}

// bytes returns the next n bytes; nil after an error.
func (m *machine) bytes(n uint64) []byte {
	if n > uint64(len(m.data)-m.at) {
		m.fail("it ends too early")
	}
	if m.err != nil {
		return nil
	}
	m.at += int(n)
	return m.data[m.at-int(n) : m.at]
}

// unsigned returns a little-endian integer of n bytes.
func (m *machine) unsigned(n uint64) uint64 {
	var all [8]byte
	copy(all[:], m.bytes(n))
	return binary.LittleEndian.Uint64(all[:])
}

// line returns the bytes up to the end of the line, without it.
func (m *machine) line() []byte {
	end := bytes.IndexByte(m.data[m.at:], '\n')
	if end < 0 {
		m.fail("a line without an end")
		return nil
	}
	return bytes.TrimSuffix(m.bytes(uint64(end)+1), []byte("\n"))
}

func (m *machine) push(v pickled) {
	m.left--
	m.stack = append(m.stack, v)
}

func (m *machine) number(v float64) { m.push(pickled{Kind: pickledNumber, Number: v}) }

// sequence pushes a tuple or list of copies of values.
func (m *machine) sequence(values []pickled) {
	items := slices.Clone(values)
	m.left -= len(items)
	m.push(pickled{Kind: pickledSequence, items: &items})
}

// pop removes the last n values of the stack, n > 0.
func (m *machine) pop(n int) []pickled {
	if len(m.stack) < n {
		m.fail("the stack is empty")
		return make([]pickled, n)
	}
	from := len(m.stack) - n
	values := m.stack[from:]
	m.stack = m.stack[:from]
	return values
}

// popMark removes the values above the last mark, and the mark.
func (m *machine) popMark() []pickled {
	for i, v := range slices.Backward(m.stack) {
		if v.Kind == pickledMark {
			above := m.stack[i+1:]
			m.stack = m.stack[:i]
			return above
		}
	}
	m.fail("there is no mark")
	return nil
}

// extend appends values to the list that is the last of the stack.
func (m *machine) extend(values []pickled) {
	list := m.pop(1)[0]
	if m.err == nil && list.items == nil {
		m.fail("append to what is no list")
	}
	if m.err == nil {
		m.left -= len(values)
		*list.items = append(*list.items, values...)
		m.stack = append(m.stack, list)
	}
}

// step executes one opcode.
func (m *machine) step(op byte) {
	switch op {
	case 0x80: // PROTO
		if v := m.unsigned(1); v > 5 {
			m.fail("protocol %d, of 0 to 5", v)
		}
	case 0x95: // FRAME
		m.bytes(8)
	case '(':
		m.push(pickled{Kind: pickledMark})
	case '0': // POP
		m.pop(1)
	case '1': // POP_MARK
		m.popMark()
	case 'N':
		m.push(pickled{})
	case ']', ')': // EMPTY_LIST, EMPTY_TUPLE
		m.sequence(nil)
	case 'l', 't': // LIST, TUPLE
		m.sequence(m.popMark())
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		values := m.pop(int(op) - 0x84)
		if slices.ContainsFunc(values, func(v pickled) bool { return v.Kind == pickledMark }) {
			m.fail("a mark in a tuple")
		}
		m.sequence(values)
	case 'a': // APPEND
		values := m.pop(1)
		if values[0].Kind == pickledMark {
			m.fail("a mark in a list")
		}
		m.extend(values)
	case 'e': // APPENDS
		m.extend(m.popMark())
	case 'p', 'q', 'r', 0x94: // PUT, BINPUT, LONG_BINPUT, MEMOIZE
		key := m.key(op)
		v := m.pop(1)[0]
		m.push(v) // and into the memo
		m.memo[key] = v
	case 'g', 'h', 'j': // GET, BINGET, LONG_BINGET
		key := m.key(op)
		v, ok := m.memo[key]
		if !ok {
			m.fail("nothing was remembered as %d", key)
		}
		m.push(v)
	case 'J': // BININT
		m.number(float64(int32(uint32(m.unsigned(4)))))
	case 'K', 'M': // BININT1, BININT2
		m.number(float64(m.unsigned(uint64(op-'K')/2 + 1)))
	case 'G': // BINFLOAT
		m.number(math.Float64frombits(bits.ReverseBytes64(m.unsigned(8))))
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.number(float64(0x89 - op))
	case 0x8a, 0x8b: // LONG1, LONG4
		m.long(m.bytes(m.unsigned(1 + 3*uint64(op-0x8a))))
	case 'I', 'L', 'F': // INT, LONG, FLOAT
		m.written(op)
	case 'U', 0x8c, 'C': // SHORT_BINSTRING, SHORT_BINUNICODE, SHORT_BINBYTES
		m.text(m.bytes(m.unsigned(1)))
	case 'T', 'X', 'B': // BINSTRING, BINUNICODE, BINBYTES
		m.text(m.bytes(m.unsigned(4)))
	case 0x8d, 0x8e: // BINUNICODE8, BINBYTES8
		m.text(m.bytes(m.unsigned(8)))
	case 'S': // STRING
		m.text(m.quoted())
	case 'V': // UNICODE
		m.text(m.escaped())
	default:
		m.at--
		m.fail("opcode 0x%02x is not one of numbers, texts, tuples and lists (nothing is executed)", op)
	}
}

func (m *machine) text(b []byte) { m.push(pickled{Kind: pickledText, Text: b}) }

// key reads the number under which a value is remembered.
func (m *machine) key(op byte) uint64 {
	switch op {
	case 'q', 'h':
		return m.unsigned(1)
	case 'r', 'j':
		return m.unsigned(4)
	case 0x94: // MEMOIZE
		return uint64(len(m.memo))
	}
	b := m.line()
	key, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		m.fail("%.20q is not the number of a value", b)
	}
	return key
}

// long pushes a little-endian integer in two's complement.
func (m *machine) long(b []byte) {
	if len(b) > maxLong {
		m.fail("an integer of %d bytes, more than %d", len(b), maxLong)
		return
	}
	digits := slices.Clone(b)
	slices.Reverse(digits)
	v := new(big.Int).SetBytes(digits)
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	f, _ := new(big.Float).SetInt(v).Float64()
	m.number(f)
}

// written pushes a number that stands in a line of its own.
func (m *machine) written(op byte) {
	b := m.line()
	text := string(b[:min(len(b), maxLong)])
	if op == 'L' {
		text = strings.TrimSuffix(text, "L")
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case len(b) > maxLong:
		m.fail("a number of %d digits, more than %d", len(b), maxLong)
	case op != 'F' && strings.Trim(text, "+-0123456789") != "":
		m.fail("%.20q is not an integer", b)
	case err != nil && v == 0:
		m.fail("%.20q is not a number", b)
	}
	m.number(v)
}

// quoted reads a line with a text as Python 2 prints it.
func (m *machine) quoted() []byte {
	b := m.line()
	if len(b) < 2 || b[0] != '\'' && b[0] != '"' || b[len(b)-1] != b[0] {
		m.fail("a text without quotes")
		return nil
	}
	b = b[1 : len(b)-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	for len(b) > 0 {
		c := b[0]
		if b = b[1:]; c != '\\' {
			out = append(out, c)
			continue
		}
		if len(b) == 0 {
			m.fail("a text that ends with a backslash")
			break
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
			var v rune
			v, b = m.hex(b, 2)
			out = append(out, byte(v))
		default:
			out = append(out, '\\', c)
		}
	}
	return out
}

// escaped reads a line in Python's encoding raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX.
func (m *machine) escaped() []byte {
	b := m.line()
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, size := rune(b[0]), 0
		if len(b) > 1 && r == '\\' {
			size = map[byte]int{'u': 4, 'U': 8}[b[1]]
		}
		if size == 0 {
			b = b[1:]
		} else {
			r, b = m.hex(b[2:], size)
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// hex reads n hexadecimal digits at the beginning of a text, and returns what follows them.
func (m *machine) hex(b []byte, n int) (rune, []byte) {
	v, err := strconv.ParseUint(string(b[:min(n, len(b))]), 16, 32)
	if err != nil || len(b) < n {
		m.fail("a text with a bad escape")
		return 0, nil
	}
	return rune(v), b[n:]
}
