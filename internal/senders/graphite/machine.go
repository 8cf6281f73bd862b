package graphite

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrPickle marks data that is no pickle of plain data, or exceeds a limit.
var ErrPickle = errors.New("invalid pickle")

// pickledKind is the kind of a Python object.
type pickledKind uint8

const (
	pickledNone pickledKind = iota
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

// maxValues is how many values a pickle may make, in lists, tuples, and the memo. They take 64
// bytes each at most twice, since slices grow.
const maxValues = 1 << 19

// unpickle returns the object of a pickle. Its texts are parts of data where that is possible.
func unpickle(data []byte) (pickled, error) {
	m := machine{data: data, left: maxValues}
	for {
		op, err := m.byte()
		if err != nil {
			return pickled{}, err
		}
		if op == '.' {
			break
		}
		if err := m.step(op); err != nil {
			return pickled{}, err
		}
		if m.left < 0 {
			return pickled{}, fmt.Errorf("%w: it has more than %d values: send fewer points in a message", ErrPickle, maxValues)
		}
	}
	v, err := m.pop()
	if err == nil && v.Kind == pickledMark {
		err = m.invalid("the stack ends with a mark")
	}
	return v, err
}

// machine is the stack machine of Python's pickle format. It reads plain data: numbers, texts,
// tuples and lists. It executes nothing: opcodes that make objects of classes, or call functions,
// are refused. It knows the opcodes of all protocols (0 to 5) for such data. The format is that of
// Python's Lib/pickletools.py.
type machine struct {
	data  []byte
	at    int
	stack []pickled
	memo  map[uint64]pickled
	left  int // values that may still be made
}

func (m *machine) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s at byte %d", ErrPickle, fmt.Sprintf(format, args...), m.at)
}

func (m *machine) byte() (byte, error) {
	b, err := m.bytes(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// bytes returns the next n bytes.
func (m *machine) bytes(n uint64) ([]byte, error) {
	if n > uint64(len(m.data)-m.at) {
		return nil, m.invalid("it ends too early")
	}
	b := m.data[m.at : m.at+int(n)]
	m.at += int(n)
	return b, nil
}

// unsigned returns a little-endian integer of n bytes.
func (m *machine) unsigned(n uint64) (uint64, error) {
	b, err := m.bytes(n)
	if err != nil {
		return 0, err
	}
	var all [8]byte
	copy(all[:], b)
	return binary.LittleEndian.Uint64(all[:]), nil
}

// sized returns bytes after their length, which has n bytes.
func (m *machine) sized(n uint64) ([]byte, error) {
	size, err := m.unsigned(n)
	if err != nil {
		return nil, err
	}
	return m.bytes(size)
}

func (m *machine) push(v pickled) {
	m.left--
	m.stack = append(m.stack, v)
}

func (m *machine) number(v float64) { m.push(pickled{Kind: pickledNumber, Number: v}) }

func (m *machine) pop() (pickled, error) {
	if len(m.stack) == 0 {
		return pickled{}, m.invalid("the stack is empty")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// popMark removes the values above the last mark, and the mark.
func (m *machine) popMark() ([]pickled, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if m.stack[i].Kind == pickledMark {
			above := m.stack[i+1:]
			m.stack = m.stack[:i]
			return above, nil
		}
	}
	return nil, m.invalid("there is no mark")
}

// sequence pushes a tuple or list of copies of values.
func (m *machine) sequence(values []pickled) {
	items := append([]pickled(nil), values...)
	m.left -= len(items)
	m.push(pickled{Kind: pickledSequence, items: &items})
}

// extend appends values to the list that is the last of the stack.
func (m *machine) extend(values ...pickled) error {
	if len(m.stack) == 0 || m.stack[len(m.stack)-1].items == nil {
		return m.invalid("append to what is no list")
	}
	list := m.stack[len(m.stack)-1].items
	m.left -= len(values)
	*list = append(*list, values...)
	return nil
}
