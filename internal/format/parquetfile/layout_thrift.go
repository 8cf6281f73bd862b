package parquetfile

import (
	"errors"

	"github.com/parquet-go/parquet-go/format"
)

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
