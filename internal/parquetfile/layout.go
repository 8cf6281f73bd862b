package parquetfile

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"
)

// Layout is what the footer says of a file's columns. Its strings alias the footer.
type Layout struct {
	Rows      int64
	Leaves    []Leaf
	Groups    []Group
	KeyValues map[string]string
}

// Leaf is a column of values.
type Leaf struct {
	Path []string
	Type format.Type
	// elements of one repeated group, all else REQUIRED: there are repetition and definition levels
	// of one bit
	Nested bool
}

// Group is a row group.
type Group struct {
	Rows   int64
	Chunks []ChunkInfo // by leaf
}

// ChunkInfo is a column chunk as the footer describes it.
type ChunkInfo struct {
	Span   Span
	Codec  format.CompressionCodec
	Values int64 // including empty lists

	typ              format.Type
	dict, data, size int64
}

// ReadLayout reads the footer of a file of size bytes. It takes files of the shape that Writer
// writes: REQUIRED columns, and lists and maps of REQUIRED elements. Every length is held against
// the bytes that are there, so a corrupt one claims no memory. Errors: ErrFormat, and those of r.
func ReadLayout(r io.ReaderAt, size int64) (*Layout, error) {
	footer, err := ReadFooter(r, size)
	if err != nil {
		return nil, err
	}
	l, err := decodeLayout(footer)
	if err != nil {
		return nil, fmt.Errorf("%w: decode footer: %w", ErrFormat, err)
	}
	if err := l.check(size); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return l, nil
}

// check holds the counts and places of a footer against one another and against the size of the
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
				return fmt.Errorf("column %v of row group %d lies at %d, %d bytes long, in a file of %d", l.Leaves[j].Path, i, s.Offset, s.Length, size)
			}
			if c.typ != l.Leaves[j].Type {
				return fmt.Errorf("column %v of row group %d is of type %v, the schema says %v", l.Leaves[j].Path, i, c.typ, l.Leaves[j].Type)
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
