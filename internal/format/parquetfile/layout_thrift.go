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
	for last := int64(0); ; {
		id, typ, err := s.field(last)
		if err != nil {
			return nil, err
		}
		if typ == 0 {
			break
		}
		switch last = id; id {
		case schemaField:
			l.Leaves, err = s.leaves(typ)
		case 3:
			l.Rows, err = s.integer(typ)
		case 4:
			err = s.structs(typ, func(uint64) error {
				g, err := s.group(len(l.Leaves))
				l.Groups = append(l.Groups, g)
				return err
			})
		case keyValueField:
			err = s.keyValues(typ, l.KeyValues)
		default:
			err = s.skip(typ, 1)
		}
		if err != nil {
			return nil, err
		}
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
func (s *skimmer) group(leaves int) (g Group, err error) {
	err = s.fields(func(id int64, typ byte) (err error) {
		switch id {
		case 1:
			err = s.structs(typ, func(left uint64) error {
				if g.Chunks == nil {
					g.Chunks = make([]ChunkInfo, 0, min(left, uint64(leaves)))
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

// chunkInfo decodes a column chunk. A file has one for each column, so this takes most of the time
// of its layout.
func (s *skimmer) chunkInfo() (c ChunkInfo, err error) {
	for last := int64(0); ; {
		id, typ, err := s.field(last)
		if err == nil && typ == 0 {
			break
		}
		if last = id; err == nil && id == 3 && typ == typeStruct {
			err = s.columnMeta(&c)
		} else if err == nil {
			err = s.skip(typ, 3)
		}
		if err != nil {
			return c, err
		}
	}
	c.Span = Span{Offset: c.data, Length: c.size}
	if c.dict > 0 {
		c.Span.Offset = min(c.dict, c.data)
	}
	return c, nil
}

// columnMeta decodes the metadata of a column chunk.
func (s *skimmer) columnMeta(c *ChunkInfo) error {
	for last := int64(0); ; {
		id, typ, err := s.field(last)
		if err != nil || typ == 0 {
			return err
		}
		var n int64
		switch last = id; id {
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
		if err != nil {
			return err
		}
	}
}
