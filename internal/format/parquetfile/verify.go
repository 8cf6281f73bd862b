package parquetfile

import (
	"fmt"
	"io"
)

// Verify checks every page of a file of size bytes against its checksum, without decompressing it,
// and the footer and page headers against their checksum fields. found reports whether the file has
// those; of a file without them, only the structure is checked. Errors: ErrFormat, and those of r.
func Verify(r io.ReaderAt, size int64) (found bool, err error) {
	l, err := ReadLayout(r, size)
	if err != nil {
		return false, err
	}
	// No other reader reads the beginning of a file.
	head := make([]byte, len(Magic))
	if err := readAt(r, head, 0); err != nil {
		return false, fmt.Errorf("read magic: %w", err)
	}
	if string(head) != Magic {
		return false, fmt.Errorf("%w: no Parquet magic at its beginning", ErrFormat)
	}
	var p PageReader
	for i := range l.Groups {
		for j := range l.Groups[i].Chunks {
			if err := p.verify(r, &l.Groups[i].Chunks[j]); err != nil {
				return false, fmt.Errorf("row group %d, column %v: %w", i, l.Leaves[j].Path, err)
			}
		}
	}
	return l.KeyValues[KeyChecksums] != "", nil
}

// verify checks all pages of a chunk.
func (p *PageReader) verify(r io.ReaderAt, c *ChunkInfo) error {
	if err := p.Reset(r, c.Span, c.Values); err != nil {
		return err
	}
	if p.dictPage.values > 0 {
		if err := p.stored(p.dictPage.at, p.dictPage.compressed, p.dictPage.sum); err != nil {
			return err
		}
	}
	for {
		n, err := p.Next()
		if err != nil || n == 0 {
			return err
		}
		if err := p.stored(p.body, p.head.compressed, p.sum); err != nil {
			return err
		}
	}
}

// stored checks the stored bytes of a page against its checksum.
func (p *PageReader) stored(at, n int64, sum pageSum) error {
	b, err := p.bytes(at, n)
	if err != nil {
		return err
	}
	return sum.checkPage(b, at)
}
