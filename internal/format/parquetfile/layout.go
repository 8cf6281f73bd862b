package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/checksum"
)

// Layout describes the columns of a file, as its footer has them. The strings of its key-value
// metadata alias the footer.
type Layout struct {
	Rows      int64
	Leaves    []Leaf // layouts of files with equal schemas share them, so nobody changes them
	Groups    []Group
	KeyValues map[string]string
}

// Leaf is a leaf column of the schema.
type Leaf struct {
	Path []string
	Type format.Type
	// the values are elements of one repeated group, and all groups above are REQUIRED: repetition
	// and definition levels have one bit
	Nested bool
}

// Group is a row group.
type Group struct {
	Rows   int64
	Chunks []ChunkInfo // by leaf
}

// ChunkInfo is the footer's description of a column chunk.
type ChunkInfo struct {
	Span   Span
	Codec  format.CompressionCodec
	Values int64 // including empty lists

	typ              format.Type
	dict, data, size int64
}

// ReadLayout reads the footer of a file of size bytes. It supports files of the shape that Writer
// writes: REQUIRED columns, and lists and maps of REQUIRED elements. It checks every length against
// the available bytes, so that a corrupt one cannot claim memory. Errors: ErrFormat, and those of
// r.
func ReadLayout(r io.ReaderAt, size int64) (*Layout, error) {
	footer, err := ReadFooter(r, size)
	if err != nil {
		return nil, err
	}
	return layoutOf(footer, size)
}

// LayoutOf is ReadLayout of a file in memory. The strings of the layout alias it.
func LayoutOf(file []byte) (*Layout, error) {
	size := int64(len(file))
	footer, err := footerAt(file, size, nil)
	if err != nil {
		return nil, err
	}
	return layoutOf(footer, size)
}

func layoutOf(footer []byte, size int64) (*Layout, error) {
	l, err := decodeLayout(footer)
	if errors.Is(err, checksum.ErrUnknownVersion) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: decode footer: %w", ErrFormat, err)
	}
	if err := l.check(size); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return l, nil
}

// check checks the counts and offsets of a footer against one another and against the size of the
// file.
func (l *Layout) check(size int64) error {
	rows := int64(0)
	for i, g := range l.Groups {
		if len(g.Chunks) != len(l.Leaves) {
			return fmt.Errorf("row group %d has %d columns, the schema has %d", i, len(g.Chunks), len(l.Leaves))
		}
		if g.Rows < 0 || g.Rows > l.Rows-rows {
			return fmt.Errorf("row group %d claims %d rows of %d", i, g.Rows, l.Rows)
		}
		rows += g.Rows
		for j, c := range g.Chunks {
			if s := c.Span; s.Offset < int64(len(Magic)) || s.Length < 0 || s.Offset > size || s.Length > size-s.Offset {
				return fmt.Errorf("column %v of row group %d is at offset %d with %d bytes, in a file of %d bytes", l.Leaves[j].Path, i, s.Offset, s.Length, size)
			}
			if c.typ != l.Leaves[j].Type {
				return fmt.Errorf("column %v of row group %d has type %v, the schema has %v", l.Leaves[j].Path, i, c.typ, l.Leaves[j].Type)
			}
			if c.Values < g.Rows || !l.Leaves[j].Nested && c.Values != g.Rows {
				return fmt.Errorf("column %v of row group %d has %d values for %d rows", l.Leaves[j].Path, i, c.Values, g.Rows)
			}
		}
	}
	if rows != l.Rows {
		return fmt.Errorf("row groups have %d rows, the file %d", rows, l.Rows)
	}
	return nil
}

// schemaField is the field number of the schema in FileMetaData (parquet.thrift).
const schemaField = 2

const (
	// keptSchemas is the number of schemas whose leaves are kept, and maxKeptSchema the bytes of
	// the largest one of them.
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
func (s *skimmer) leaves(typ byte) []Leaf {
	if typ != typeList {
		s.fail(fmt.Errorf("the schema has thrift type %d", typ))
		return nil
	}
	from := s.at
	k := knownSchema(s.b[from:])
	if k.leaves != nil {
		s.at += len(k.list)
		return k.leaves
	}
	if s.skip(typ, 1); s.err != nil {
		return nil
	}
	k.list = bytes.Clone(s.b[from:s.at])
	var err error
	if k.leaves, err = decodeSchema(k.list); err != nil {
		s.fail(err)
	} else if len(k.list) <= maxKeptSchema {
		keepSchema(k)
	}
	return k.leaves
}

// knownSchema returns the schema with which b begins, none if that is not known.
func knownSchema(b []byte) (k keptSchema) {
	schemas.mu.Lock()
	defer schemas.mu.Unlock()
	for i, k := range schemas.last {
		if bytes.HasPrefix(b, k.list) {
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
	all := slices.Insert(schemas.last, 0, k)
	schemas.last = all[:min(len(all), keptSchemas)]
}

// decodeSchema returns the leaf columns of a schema, whose strings alias the list.
func decodeSchema(list []byte) ([]Leaf, error) {
	var schema []element
	s := skimmer{b: list}
	for n := s.structs(typeList); n > 0 && s.err == nil; n-- {
		schema = append(schema, s.element())
	}
	if s.err != nil {
		return nil, s.err
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

func (s *skimmer) element() (e element) {
	for f := (field{}); s.next(&f); {
		switch f.id {
		case 1:
			e.typ, e.leaf = format.Type(s.integer(f.typ)), true
		case 3:
			e.repetition = s.integer(f.typ)
		case 4:
			e.name = s.text(f.typ)
		case 5:
			e.children = s.integer(f.typ)
		default:
			s.skip(f.typ, 2)
		}
	}
	return e
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

// decodeLayout decodes the parts of a footer that Layout needs. Field numbers are those of
// parquet.thrift.
func decodeLayout(footer []byte) (*Layout, error) {
	l := &Layout{KeyValues: map[string]string{}}
	s := skimmer{b: footer}
	for f := (field{}); s.next(&f); {
		switch f.id {
		case schemaField:
			l.Leaves = s.leaves(f.typ)
		case 3:
			l.Rows = s.integer(f.typ)
		case 4:
			for n := s.structs(f.typ); n > 0 && s.err == nil; n-- {
				l.Groups = append(l.Groups, s.group(len(l.Leaves)))
			}
		case keyValueField:
			s.keyValues(f.typ, l.KeyValues)
		default:
			s.skip(f.typ, 1)
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if err := checkDeclared(l.KeyValues, footer); err != nil {
		return nil, err
	}
	if l.Leaves == nil {
		return nil, errors.New("no schema")
	}
	return l, nil
}

// group decodes a row group of a schema of so many leaves.
func (s *skimmer) group(leaves int) (g Group) {
	for f := (field{}); s.next(&f); {
		switch f.id {
		case 1:
			n := s.structs(f.typ)
			if g.Chunks == nil {
				g.Chunks = make([]ChunkInfo, 0, min(n, uint64(leaves)))
			}
			for ; n > 0 && s.err == nil; n-- {
				g.Chunks = append(g.Chunks, s.chunkInfo())
			}
		case 3:
			g.Rows = s.integer(f.typ)
		default:
			s.skip(f.typ, 2)
		}
	}
	return g
}

// chunkInfo decodes a column chunk. A file has one for each column, so this takes most of the time
// of its layout.
func (s *skimmer) chunkInfo() (c ChunkInfo) {
	for f := (field{}); s.next(&f); {
		if f.id == 3 && f.typ == typeStruct {
			s.columnMeta(&c)
		} else {
			s.skip(f.typ, 3)
		}
	}
	c.Span = Span{Offset: c.data, Length: c.size}
	if c.dict > 0 {
		c.Span.Offset = min(c.dict, c.data)
	}
	return c
}

// columnMeta decodes the metadata of a column chunk.
func (s *skimmer) columnMeta(c *ChunkInfo) {
	for f := (field{}); s.next(&f); {
		switch f.id {
		case 1:
			c.typ = format.Type(s.integer(f.typ))
		case 4:
			c.Codec = format.CompressionCodec(s.integer(f.typ))
		case 5:
			c.Values = s.integer(f.typ)
		case 7:
			c.size = s.integer(f.typ)
		case 9:
			c.data = s.integer(f.typ)
		case 11:
			c.dict = s.integer(f.typ)
		default:
			s.skip(f.typ, 4)
		}
	}
}
