package parquetfile

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// decodeLayout decodes the parts of a footer that Layout needs. Field numbers are those of
// parquet.thrift.
func decodeLayout(footer []byte) (*Layout, error) {
	l := &Layout{KeyValues: map[string]string{}}
	var schema []element
	s := skimmer{footer}
	err := s.fields(func(id int64, typ byte) (err error) {
		switch id {
		case 2:
			err = s.structs(typ, func(uint64) error {
				e, err := s.element()
				schema = append(schema, e)
				return err
			})
		case 3:
			l.Rows, err = s.integer(typ)
		case 4:
			err = s.structs(typ, func(uint64) error {
				g, err := s.group(len(schema))
				l.Groups = append(l.Groups, g)
				return err
			})
		case keyValueField:
			err = s.keyValues(typ, l.KeyValues)
		default:
			err = s.skip(typ, 1)
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

func (s *skimmer) element() (e element, err error) {
	err = s.fields(func(id int64, typ byte) (err error) {
		var n int64
		switch id {
		case 1:
			n, err = s.integer(typ)
			e.typ, e.leaf = format.Type(n), true
		case 3:
			e.repetition, err = s.integer(typ)
		case 4:
			e.name, err = s.text(typ)
		case 5:
			e.children, err = s.integer(typ)
		default:
			err = s.skip(typ, 2)
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

// group decodes a row group of a schema of so many elements.
func (s *skimmer) group(elements int) (g Group, err error) {
	err = s.fields(func(id int64, typ byte) (err error) {
		switch id {
		case 1:
			err = s.structs(typ, func(left uint64) error {
				if g.Chunks == nil {
					g.Chunks = make([]ChunkInfo, 0, min(left, uint64(elements)))
				}
				c, err := s.chunkInfo()
				g.Chunks = append(g.Chunks, c)
				return err
			})
		case 3:
			g.Rows, err = s.integer(typ)
		default:
			err = s.skip(typ, 2)
		}
		return err
	})
	return g, err
}

func (s *skimmer) chunkInfo() (c ChunkInfo, err error) {
	err = s.fields(func(id int64, typ byte) error {
		if id != 3 || typ != skimStruct {
			return s.skip(typ, 3)
		}
		return s.fields(func(id int64, typ byte) (err error) {
			var n int64
			switch id {
			case 1:
				n, err = s.integer(typ)
				c.typ = format.Type(n)
			case 4:
				n, err = s.integer(typ)
				c.Codec = format.CompressionCodec(n)
			case 5:
				c.Values, err = s.integer(typ)
			case 7:
				c.size, err = s.integer(typ)
			case 9:
				c.data, err = s.integer(typ)
			case 11:
				c.dict, err = s.integer(typ)
			default:
				err = s.skip(typ, 4)
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
