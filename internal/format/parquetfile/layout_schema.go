package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/parquet-go/parquet-go/format"
)

// schemaField is the field number of the schema in FileMetaData (parquet.thrift).
const schemaField = 2

const (
	// keptSchemas is the number of schemas whose leaves are kept, and maxKeptSchema the bytes of the
	// largest one of them.
	keptSchemas   = 8
	maxKeptSchema = 16 << 10
)

// schemas are the leaves of the schemas that were decoded last. Nearly all segments of a tenant
// have the same one, and to decode its sixty columns takes as long as all else in the footer.
var schemas struct {
	mu   sync.Mutex
	last []keptSchema // the one that was used last comes first
}

// keptSchema is a schema that was decoded: the bytes of the list, and its leaves, whose strings
// alias these.
type keptSchema struct {
	list   []byte
	leaves []Leaf
}

// leaves decodes the schema, a list of a type, and returns its leaf columns.
func (s *skimmer) leaves(typ byte) ([]Leaf, error) {
	if typ != skimList {
		return nil, fmt.Errorf("the schema has thrift type %d", typ)
	}
	rest := s.b[s.at:]
	if k := knownSchema(rest); k.leaves != nil {
		s.at += len(k.list)
		return k.leaves, nil
	}
	if err := s.skip(typ, 1); err != nil {
		return nil, err
	}
	k := keptSchema{list: bytes.Clone(rest[:len(rest)-len(s.b[s.at:])])}
	var err error
	if k.leaves, err = decodeSchema(k.list); err == nil && len(k.list) <= maxKeptSchema {
		keepSchema(k)
	}
	return k.leaves, err
}

// knownSchema returns the schema with which b begins, none if that is not known.
func knownSchema(b []byte) (k keptSchema) {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	for i := range schemas.last {
		if k := schemas.last[i]; bytes.HasPrefix(b, k.list) {
			copy(schemas.last[1:i+1], schemas.last[:i])
			schemas.last[0] = k
			return k
		}
	}
	return k
}

// keepSchema keeps a schema in place of the one that was used longest ago.
func keepSchema(k keptSchema) {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	if len(schemas.last) < keptSchemas {
		schemas.last = append(schemas.last, keptSchema{})
	}
	copy(schemas.last[1:], schemas.last)
	schemas.last[0] = k
}

// decodeSchema returns the leaf columns of a schema, whose strings alias the list.
func decodeSchema(list []byte) ([]Leaf, error) {
	var schema []element
	s := skimmer{b: list}
	err := s.structs(skimList, func(uint64) error {
		e, err := s.element()
		schema = append(schema, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(schema) == 0 {
		return nil, errors.New("no schema")
	}
	leaves, rest, err := appendLeaves(make([]Leaf, 0, len(schema)), schema[1:], int(schema[0].children), nil, false)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d schema elements after the tree", len(rest))
	}
	return leaves, err
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

// appendLeaves appends the leaves of n subtrees at the front of schema to dst, and returns the
// elements after them.
func appendLeaves(dst []Leaf, schema []element, n int, path []string, nested bool) (_ []Leaf, rest []element, err error) {
	for range n {
		if len(schema) == 0 {
			return nil, nil, errors.New("schema tree is cut off")
		}
		e := schema[0]
		at := append(path[:len(path):len(path)], e.name)
		inside := nested || e.repetition == int64(format.Repeated)
		switch {
		case e.repetition == int64(format.Optional), nested && e.repetition == int64(format.Repeated), len(at) > maxDepth:
			return nil, nil, fmt.Errorf("column %v is nested or optional in a way that is not supported", at)
		case e.leaf:
			dst = append(dst, Leaf{Path: at, Type: e.typ, Nested: inside})
			schema = schema[1:]
		default:
			if dst, schema, err = appendLeaves(dst, schema[1:], int(e.children), at, inside); err != nil {
				return nil, nil, err
			}
		}
	}
	return dst, schema, nil
}
