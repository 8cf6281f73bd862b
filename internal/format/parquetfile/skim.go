package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// skimmer walks over values in Thrift's compact protocol, and decodes no more than integers. Every
// value takes at least one byte, so a corrupt length fails at the end of the bytes.
type skimmer struct {
	b  []byte
	at int // position of what follows
}

// Types of the compact protocol.
const (
	typeTrue   = 1
	typeFalse  = 2
	typeI8     = 3
	typeShort  = 4
	typeInt    = 5
	typeLong   = 6
	typeDouble = 7
	typeBinary = 8
	typeList   = 9
	typeSet    = 10
	typeMap    = 11
	typeStruct = 12
)

var errSkim = errors.New("thrift values are cut off")

// field walks over the head of a field, and returns its number and type. last is the number of the
// field before it. The type is 0 at the end of the struct.
func (s *skimmer) field(last int64) (id int64, typ byte, err error) {
	head, err := s.byte()
	if err != nil || head == 0 {
		return 0, 0, err
	}
	if delta := head >> 4; delta > 0 {
		return last + int64(delta), head & 15, nil
	}
	v, err := s.varint()
	return v, head & 15, err
}

// skip walks over a value of a type.
func (s *skimmer) skip(typ byte, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch typ {
	case typeTrue, typeFalse: // the type is the value
		return nil
	case typeI8:
		return s.bytes(1)
	case typeShort, typeInt, typeLong:
		_, err := s.number()
		return err
	case typeDouble:
		return s.bytes(8)
	case typeBinary:
		n, err := s.number()
		if err != nil {
			return err
		}
		return s.bytes(n)
	case typeList, typeSet:
		typ, n, err := s.listHead()
		for ; n > 0 && err == nil; n-- {
			err = s.item(typ, depth+1)
		}
		return err
	case typeMap:
		return s.pairs(depth + 1)
	case typeStruct:
		return s.fields(func(_ int64, typ byte) error { return s.skip(typ, depth+1) })
	}
	return fmt.Errorf("unknown thrift type %d", typ)
}

// fields calls visit, which walks over the value, for every field of a struct.
func (s *skimmer) fields(visit func(id int64, typ byte) error) error {
	for id := int64(0); ; {
		next, typ, err := s.field(id)
		if err != nil || typ == 0 {
			return err
		}
		if err := visit(next, typ); err != nil {
			return err
		}
		id = next
	}
}

// structs calls visit, which walks over the fields, for every struct of a list of a type. left is the
// number of structs from this one on.
func (s *skimmer) structs(typ byte, visit func(left uint64) error) error {
	if typ != typeList {
		return fmt.Errorf("a list field has thrift type %d", typ)
	}
	of, n, err := s.listHead()
	if err != nil {
		return err
	}
	if of != typeStruct && n > 0 {
		return fmt.Errorf("a list of structs has elements of thrift type %d", of)
	}
	for ; n > 0; n-- {
		if err := visit(n); err != nil {
			return err
		}
	}
	return nil
}

// text decodes a string of a type, which aliases the bytes.
func (s *skimmer) text(typ byte) (string, error) {
	if typ != typeBinary {
		return "", fmt.Errorf("a string has thrift type %d", typ)
	}
	n, err := s.number()
	if err != nil {
		return "", err
	}
	b := s.b[s.at:]
	if err := s.bytes(n); err != nil {
		return "", err
	}
	return unsafe.String(unsafe.SliceData(b), int(n)), nil
}

// integer decodes an integer of a type.
func (s *skimmer) integer(typ byte) (int64, error) {
	if typ != typeShort && typ != typeInt && typ != typeLong {
		return 0, fmt.Errorf("an integer has thrift type %d", typ)
	}
	return s.varint()
}

// listHead walks over the head of a list, and returns the type and number of its elements.
func (s *skimmer) listHead() (typ byte, n uint64, err error) {
	head, err := s.byte()
	if n = uint64(head >> 4); n == 15 && err == nil {
		n, err = s.number()
	}
	return head & 15, n, err
}

func (s *skimmer) pairs(depth int) error {
	n, err := s.number()
	if err != nil || n == 0 {
		return err
	}
	types, err := s.byte()
	if err != nil {
		return err
	}
	for ; n > 0; n-- {
		if err := s.item(types>>4, depth); err != nil {
			return err
		}
		if err := s.item(types&15, depth); err != nil {
			return err
		}
	}
	return nil
}

// item is skip in a container, where a boolean takes a byte.
func (s *skimmer) item(typ byte, depth int) error {
	if typ == typeTrue || typ == typeFalse {
		typ = typeI8
	}
	return s.skip(typ, depth)
}

func (s *skimmer) byte() (byte, error) {
	if s.at >= len(s.b) {
		return 0, errSkim
	}
	s.at++
	return s.b[s.at-1], nil
}

func (s *skimmer) number() (uint64, error) {
	if s.at < len(s.b) && s.b[s.at] < 1<<7 { // as most are
		s.at++
		return uint64(s.b[s.at-1]), nil
	}
	v, k := binary.Uvarint(s.b[s.at:])
	if k <= 0 {
		return 0, errSkim
	}
	s.at += k
	return v, nil
}

func (s *skimmer) varint() (int64, error) {
	v, err := s.number()
	return int64(v>>1) ^ -int64(v&1), err // zigzag
}

func (s *skimmer) bytes(n uint64) error {
	if n > uint64(len(s.b)-s.at) {
		return errSkim
	}
	s.at += int(n)
	return nil
}
