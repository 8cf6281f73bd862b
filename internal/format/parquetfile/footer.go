package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/promlake/promlake/internal/format/checksum"
)

// TailGuess is the most bytes at a file's end that ReadFooter reads first: most footers fit.
const TailGuess = 64 << 10

// Of a file of less than a megabyte, ReadFooter first reads LeastTail bytes, or a tailShare-th of it if
// that is more.
const (
	LeastTail = 12 << 10
	tailShare = 16
)

// ReadFooter returns the thrift bytes of the footer of a file of size bytes, after checking their
// checksum field. A file ends with the footer, the footer's length (4 bytes) and Magic. Errors:
// ErrFormat, and those of r.
func ReadFooter(r io.ReaderAt, size int64) ([]byte, error) {
	tail := make([]byte, max(0, min(size, TailGuess, max(LeastTail, size/tailShare))))
	if err := readAt(r, tail, size-int64(len(tail))); err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	return footerAt(tail, size, r)
}

// readAt fills b with the bytes at an offset. Errors are those of io.ReadFull.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case n > 0 && (err == nil || errors.Is(err, io.EOF)):
		return io.ErrUnexpectedEOF
	}
	return err
}

// footerTrailer is the number of bytes after the footer.
const footerTrailer = 8

// footerAt returns the footer of a file of size bytes that ends with tail. It reads the footer from
// r if tail is shorter.
func footerAt(tail []byte, size int64, r io.ReaderAt) ([]byte, error) {
	end := int64(len(tail)) - footerTrailer
	if size < footerTrailer+int64(len(Magic)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	if string(tail[end+4:]) != Magic {
		return nil, fmt.Errorf("%w: no Parquet magic at its end", ErrFormat)
	}
	n := int64(binary.LittleEndian.Uint32(tail[end:]))
	if n > size-footerTrailer-int64(len(Magic)) {
		return nil, fmt.Errorf("%w: footer of %d bytes in a file of %d", ErrFormat, n, size)
	}
	footer, at := tail[max(0, end-n):end:end], size-footerTrailer-n
	if n > end {
		footer = make([]byte, n)
		if err := readAt(r, footer, at); err != nil {
			return nil, fmt.Errorf("read footer: %w", err)
		}
	}
	_, err := checkSum("footer", footer, at)
	return footer, err
}

// keyValueField is the field number of key_value_metadata in FileMetaData (parquet.thrift).
const keyValueField = 5

// KeyValues decodes the key-value metadata of a footer and skips the rest: a planner needs nothing
// else from thousands of files, and a corrupt length cannot claim memory. The strings alias footer.
func KeyValues(footer []byte) (map[string]string, error) {
	kv := map[string]string{}
	s := skimmer{b: footer}
	for f := (field{}); s.next(&f); {
		if f.id == keyValueField {
			s.keyValues(f.typ, kv)
		} else {
			s.skip(f.typ, 1)
		}
	}
	if s.err != nil {
		return kv, s.err
	}
	return kv, checkDeclared(kv, footer)
}

// checkDeclared checks that a footer has the checksum that its key-value metadata declare, of a kind
// that this package knows.
func checkDeclared(kv map[string]string, footer []byte) error {
	kind := kv[KeyChecksums]
	switch {
	case kind == "":
		return nil
	case !hasSum(footer):
		return fmt.Errorf("%w: the footer has the key %s, but no checksum field", checksum.ErrDamaged, KeyChecksums)
	}
	return checksum.CheckVersion("the checksums of Parquet files", kind, checksumsVersion)
}

// keyValues decodes the key-value metadata, of a type, into kv.
func (s *skimmer) keyValues(typ byte, kv map[string]string) {
	for n := s.structs(typ); n > 0 && s.err == nil; n-- {
		var k, v string
		for f := (field{}); s.next(&f); { // of a KeyValue
			switch f.id {
			case 1:
				k = s.text(f.typ)
			case 2:
				v = s.text(f.typ)
			default:
				s.skip(f.typ, 3)
			}
		}
		kv[k] = v
	}
}

// maxDepth bounds the nesting of a footer's values; Parquet's own are nested 6 deep.
const maxDepth = 16

var errDepth = errors.New("values are nested too deeply")

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
