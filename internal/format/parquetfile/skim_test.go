package parquetfile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/stretchr/testify/require"
)

// readThrift skips a struct as readers of Thrift do, and returns its length.
func readThrift(b []byte) (int, error) {
	r := new(thrift.CompactProtocol).NewReaderFromBytes(b)
	err := readValue(r, thrift.STRUCT, 1)
	return r.BytesRead(), err
}

// readFields calls visit for every field of a struct; visit reads the field's value.
func readFields(r thrift.Reader, visit func(thrift.Field) error) error {
	id := int16(0)
	for {
		f, err := r.ReadField()
		if err != nil || f.Type == thrift.STOP {
			return err
		}
		if f.Delta {
			f.ID += id
		}
		id = f.ID
		if err := visit(f); err != nil {
			return err
		}
	}
}

// readValue skips the value of a field. Every value takes at least one byte, so a corrupt length fails
// at the end of the bytes.
func readValue(r thrift.Reader, t thrift.Type, depth int) (err error) {
	if depth > maxDepth {
		return errDepth
	}
	switch t {
	case thrift.TRUE, thrift.FALSE: // the type is the value
	case thrift.I8:
		_, err = r.ReadInt8()
	case thrift.I16, thrift.I32, thrift.I64:
		_, err = r.ReadInt64()
	case thrift.DOUBLE:
		_, err = r.ReadFloat64()
	case thrift.BINARY:
		_, err = r.ReadBytes()
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = r.ReadList(); err == nil {
			err = readItems(r, l.Size, depth+1, l.Type)
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = r.ReadMap(); err == nil {
			err = readItems(r, m.Size, depth+1, m.Key, m.Value)
		}
	case thrift.STRUCT:
		err = readFields(r, func(f thrift.Field) error { return readValue(r, f.Type, depth+1) })
	default:
		err = fmt.Errorf("unknown thrift type %d", t)
	}
	return err
}

// readItems skips n values of each of types. A boolean in a container takes a byte.
func readItems(r thrift.Reader, n int32, depth int, types ...thrift.Type) error {
	for range n {
		for _, t := range types {
			if t == thrift.TRUE || t == thrift.FALSE {
				t = thrift.I8
			}
			if err := readValue(r, t, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestSkim walks over random structs: a skimmer finds their ends where a reader finds them, and
// fails where that fails.
func TestSkim(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var value func(typ byte, depth int) []byte
	fields := func(depth int) (b []byte) {
		for range rng.IntN(5) {
			typ := byte(1 + rng.IntN(12))
			if depth > 4 && typ > typeBinary {
				typ = typeInt
			}
			if rng.IntN(4) == 0 {
				b = append(b, typ, byte(2*rng.IntN(60)))
			} else {
				b = append(b, byte(1+rng.IntN(15))<<4|typ)
			}
			b = append(b, value(typ, depth)...)
		}
		return append(b, 0)
	}
	item := func(typ byte, depth int) []byte {
		if typ == typeTrue || typ == typeFalse {
			typ = typeI8
		}
		return value(typ, depth)
	}
	value = func(typ byte, depth int) (b []byte) {
		switch typ {
		case typeI8:
			return []byte{byte(rng.Uint32())}
		case typeShort, typeInt, typeLong:
			return []byte{0x80 | byte(rng.Uint32()), byte(rng.IntN(128))}
		case typeDouble:
			return make([]byte, 8)
		case typeBinary:
			n := rng.IntN(20)
			return append([]byte{byte(n)}, make([]byte, n)...)
		case typeList, typeSet:
			n, of := rng.IntN(20), byte(1+rng.IntN(8))
			if b = []byte{byte(n)<<4 | of}; n >= 15 {
				b = []byte{0xf0 | of, byte(n)}
			}
			for range n {
				b = append(b, item(of, depth+1)...)
			}
		case typeMap:
			n := rng.IntN(3)
			if n == 0 {
				return []byte{0}
			}
			b = []byte{byte(n), typeInt<<4 | typeBinary}
			for range n {
				b = append(append(b, item(typeInt, depth+1)...), item(typeBinary, depth+1)...)
			}
		case typeStruct:
			return fields(depth + 1)
		}
		return b
	}
	for range 2000 {
		b := append(fields(0), 0xaa)
		n, err := readThrift(b)
		require.NoError(t, err, "%x", b)
		s := skimmer{b: b}
		s.skip(typeStruct, 1)
		require.NoError(t, s.err, "%x", b)
		require.Equal(t, n, s.at, "%x", b)

		cut := b[:rng.IntN(n)]
		_, err = readThrift(cut)
		s = skimmer{b: cut}
		s.skip(typeStruct, 1)
		require.Equal(t, err != nil, s.err != nil, "%x", cut)
	}
}
