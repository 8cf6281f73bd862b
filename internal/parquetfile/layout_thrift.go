package parquetfile

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// decodeLayout decodes the parts of a footer that Layout needs. Field numbers are those of
// parquet.thrift.
func decodeLayout(footer []byte) (*Layout, error) {
	r := new(thrift.CompactProtocol).NewReaderFromBytes(footer)
	l := &Layout{KeyValues: map[string]string{}}
	var schema []element
	err := fields(r, func(f thrift.Field) (err error) {
		switch {
		case f.ID == 2:
			schema, err = structs(r, f.Type, readElement)
		case f.ID == 3:
			l.Rows, err = integer(r, f.Type)
		case f.ID == 4:
			l.Groups, err = structs(r, f.Type, readGroup)
		case f.ID == keyValueField:
			err = keyValues(r, f.Type, l.KeyValues)
		default:
			err = skip(r, f.Type, 1)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := checkDeclared(l.KeyValues, footer); err != nil {
		return nil, err
	}
	if len(schema) == 0 {
		return nil, errors.New("no schema")
	}
	rest, err := l.addLeaves(schema[1:], int(schema[0].children), nil, false)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d schema elements after the tree", len(rest))
	}
	return l, err
}

// element is a node of the schema tree, which is stored depth first.
type element struct {
	name       string
	typ        format.Type
	leaf       bool
	repetition int64
	children   int64
}

func readElement(r thrift.Reader) (e element, err error) {
	err = fields(r, func(f thrift.Field) (err error) {
		var n int64
		switch f.ID {
		case 1:
			n, err = integer(r, f.Type)
			e.typ, e.leaf = format.Type(n), true
		case 3:
			e.repetition, err = integer(r, f.Type)
		case 4:
			e.name, err = text(r, f.Type)
		case 5:
			e.children, err = integer(r, f.Type)
		default:
			err = skip(r, f.Type, 2)
		}
		return err
	})
	return e, err
}

// addLeaves adds the leaves of n subtrees at the front of schema, and returns the elements after
// them.
func (l *Layout) addLeaves(schema []element, n int, path []string, nested bool) (rest []element, err error) {
	for range n {
		if len(schema) == 0 {
			return nil, errors.New("schema tree is cut off")
		}
		e := schema[0]
		at := append(path[:len(path):len(path)], e.name)
		inside := nested || e.repetition == int64(format.Repeated)
		switch {
		case e.repetition == int64(format.Optional), nested && e.repetition == int64(format.Repeated), len(at) > maxDepth:
			return nil, fmt.Errorf("column %v is nested or optional in a way that is not supported", at)
		case e.leaf:
			l.Leaves = append(l.Leaves, Leaf{Path: at, Type: e.typ, Nested: inside})
			schema = schema[1:]
		default:
			if schema, err = l.addLeaves(schema[1:], int(e.children), at, inside); err != nil {
				return nil, err
			}
		}
	}
	return schema, nil
}

func readGroup(r thrift.Reader) (g Group, err error) {
	err = fields(r, func(f thrift.Field) (err error) {
		switch f.ID {
		case 1:
			g.Chunks, err = structs(r, f.Type, readChunkInfo)
		case 3:
			g.Rows, err = integer(r, f.Type)
		default:
			err = skip(r, f.Type, 2)
		}
		return err
	})
	return g, err
}

func readChunkInfo(r thrift.Reader) (c ChunkInfo, err error) {
	err = fields(r, func(f thrift.Field) error {
		if f.ID != 3 || f.Type != thrift.STRUCT {
			return skip(r, f.Type, 3)
		}
		return fields(r, func(f thrift.Field) (err error) {
			var n int64
			switch f.ID {
			case 1:
				n, err = integer(r, f.Type)
				c.typ = format.Type(n)
			case 4:
				n, err = integer(r, f.Type)
				c.Codec = format.CompressionCodec(n)
			case 5:
				c.Values, err = integer(r, f.Type)
			case 7:
				c.size, err = integer(r, f.Type)
			case 9:
				c.data, err = integer(r, f.Type)
			case 11:
				c.dict, err = integer(r, f.Type)
			default:
				err = skip(r, f.Type, 4)
			}
			return err
		})
	})
	c.Span = Span{Offset: c.data, Length: c.size}
	if c.dict > 0 {
		c.Span.Offset = min(c.dict, c.data)
	}
	return c, err
}

// structs reads a list of structs.
func structs[T any](r thrift.Reader, t thrift.Type, read func(thrift.Reader) (T, error)) (out []T, err error) {
	if t != thrift.LIST {
		return nil, fmt.Errorf("a list field has type %v", t)
	}
	l, err := r.ReadList()
	if err != nil {
		return nil, err
	}
	if l.Type != thrift.STRUCT && l.Size > 0 {
		return nil, fmt.Errorf("a list of structs has elements of type %v", l.Type)
	}
	for range l.Size {
		one, err := read(r)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func integer(r thrift.Reader, t thrift.Type) (int64, error) {
	if t != thrift.I16 && t != thrift.I32 && t != thrift.I64 {
		return 0, fmt.Errorf("an integer has type %v", t)
	}
	return r.ReadInt64()
}

func text(r thrift.Reader, t thrift.Type) (string, error) {
	if t != thrift.BINARY {
		return "", fmt.Errorf("a string has type %v", t)
	}
	return r.ReadString()
}
