package parquetfile

import (
	"errors"
	"fmt"
	"io"

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
	// The footer aliases the file.
	size := int64(len(file))
	if size < footerTrailer+int64(len(Magic)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	n, err := footerLength(file, size)
	if err != nil {
		return nil, err
	}
	end := size - footerTrailer
	footer, err := checkedFooter(file[end-n:end:end], size)
	if err != nil {
		return nil, err
	}
	return layoutOf(footer, int64(len(file)))
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
