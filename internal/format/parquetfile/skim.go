package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// skimmer walks over values in Thrift's compact protocol, and decodes no more than integers. Every
// value takes at least one byte, so a corrupt length fails at the end of the bytes. An error ends
// the bytes: then all values are zero, and no struct has another field.
type skimmer struct {
	b   []byte
	at  int   // position of what follows
	err error // the first one
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

func (s *skimmer) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.b, s.at = nil, 0
}

// field is the head of a field of a struct. The zero field is before the first one.
type field struct {
	id  int64
	typ byte
}

// next walks over the head of the field after f, which becomes that field. It returns false at the
// end of the struct.
func (s *skimmer) next(f *field) bool {
	head := s.byte()
	f.typ = head & 15
	if delta := head >> 4; delta > 0 {
		f.id += int64(delta)
	} else if head != 0 {
		f.id = s.varint()
		return s.err == nil
	}
	return head != 0
}

// skip walks over a value of a type.
func (s *skimmer) skip(typ byte, depth int) {
	if depth > maxDepth {
		s.fail(errDepth)
		return
	}
	switch typ {
	case typeTrue, typeFalse: // the type is the value
	case typeI8:
		s.bytes(1)
	case typeShort, typeInt, typeLong:
		s.number()
	case typeDouble:
		s.bytes(8)
	case typeBinary:
		s.bytes(s.number())
	case typeList, typeSet:
		of, n := s.listHead()
		s.items(n, depth+1, of)
	case typeMap:
		if n := s.number(); n > 0 {
			types := s.byte()
			s.items(n, depth+1, types>>4, types&15)
		}
	case typeStruct:
		for f := (field{}); s.next(&f); {
			s.skip(f.typ, depth+1)
		}
	default:
		s.fail(fmt.Errorf("unknown thrift type %d", typ))
	}
}

// items walks over n values of each of types. A boolean in a container takes a byte.
func (s *skimmer) items(n uint64, depth int, types ...byte) {
	for ; n > 0 && s.err == nil; n-- {
		for _, typ := range types {
			if typ == typeTrue || typ == typeFalse {
				typ = typeI8
			}
			s.skip(typ, depth)
		}
	}
}

// structs walks over the head of a list of structs, which is a field of a type, and returns their
// number.
func (s *skimmer) structs(typ byte) uint64 {
	if typ != typeList {
		s.fail(fmt.Errorf("a list field has thrift type %d", typ))
	}
	of, n := s.listHead()
	if of != typeStruct && n > 0 {
		s.fail(fmt.Errorf("a list of structs has elements of thrift type %d", of))
	}
	return n
}

// text decodes a string of a type, which aliases the bytes.
func (s *skimmer) text(typ byte) string {
	if typ != typeBinary {
		s.fail(fmt.Errorf("a string has thrift type %d", typ))
	}
	b := s.bytes(s.number())
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// integer decodes an integer of a type.
func (s *skimmer) integer(typ byte) int64 {
	if typ != typeShort && typ != typeInt && typ != typeLong {
		s.fail(fmt.Errorf("an integer has thrift type %d", typ))
	}
	return s.varint()
}

// listHead walks over the head of a list, and returns the type and number of its elements.
func (s *skimmer) listHead() (typ byte, n uint64) {
	head := s.byte()
	if n = uint64(head >> 4); n == longList {
		n = s.number()
	}
	return head & 15, n
}

func (s *skimmer) byte() byte {
	if s.at >= len(s.b) {
		s.fail(errSkim)
		return 0
	}
	s.at++
	return s.b[s.at-1]
}

func (s *skimmer) number() uint64 {
	if s.at < len(s.b) && s.b[s.at] < 1<<7 { // as most are
		s.at++
		return uint64(s.b[s.at-1])
	}
	v, k := binary.Uvarint(s.b[s.at:])
	if k <= 0 {
		s.fail(errSkim)
		return 0
	}
	s.at += k
	return v
}

func (s *skimmer) varint() int64 {
	v := s.number()
	return int64(v>>1) ^ -int64(v&1) // zigzag
}

func (s *skimmer) bytes(n uint64) []byte {
	if n > uint64(len(s.b)-s.at) {
		s.fail(errSkim)
		return nil
	}
	s.at += int(n)
	return s.b[s.at-int(n) : s.at]
}
