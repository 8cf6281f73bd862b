package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/promlake/promlake/internal/checksum"
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
	footer, err := readFooter(r, size)
	if err != nil {
		return nil, err
	}
	_, err = checkSum("footer", footer, size-footerTrailer-int64(len(footer)))
	return footer, err
}

// footerTrailer is the number of bytes after the footer.
const footerTrailer = 8

func readFooter(r io.ReaderAt, size int64) ([]byte, error) {
	if size < footerTrailer+int64(len(Magic)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrFormat, size)
	}
	tail := make([]byte, min(size, TailGuess, max(LeastTail, size/tailShare)))
	if _, err := io.ReadFull(io.NewSectionReader(r, size-int64(len(tail)), int64(len(tail))), tail); err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	end := len(tail) - footerTrailer
	if string(tail[end+4:]) != Magic {
		return nil, fmt.Errorf("%w: no Parquet magic at its end", ErrFormat)
	}
	n := int64(binary.LittleEndian.Uint32(tail[end:]))
	if n > size-footerTrailer-int64(len(Magic)) {
		return nil, fmt.Errorf("%w: footer of %d bytes in a file of %d", ErrFormat, n, size)
	}
	if n <= int64(end) {
		return tail[int64(end)-n : end], nil
	}
	footer := make([]byte, n)
	if _, err := io.ReadFull(io.NewSectionReader(r, size-footerTrailer-n, n), footer); err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	return footer, nil
}

// keyValueField is the field number of key_value_metadata in FileMetaData (parquet.thrift).
const keyValueField = 5

// KeyValues decodes the key-value metadata of a footer and skips the rest: a planner needs nothing
// else from thousands of files, and a corrupt length cannot claim memory. The strings alias footer.
func KeyValues(footer []byte) (map[string]string, error) {
	kv := map[string]string{}
	s := skimmer{footer}
	for id := int64(0); ; {
		next, typ, err := s.field(id)
		switch {
		case err != nil:
			return kv, err
		case typ == 0:
			return kv, checkDeclared(kv, footer)
		case next == keyValueField:
			r := new(thrift.CompactProtocol).NewReaderFromBytes(s.b)
			if err = keyValues(r, thrift.Type(typ), kv); err == nil {
				err = s.bytes(uint64(r.BytesRead()))
			}
		default:
			err = s.skip(typ, 1)
		}
		if err != nil {
			return kv, err
		}
		id = next
	}
}

// checkDeclared checks that a footer has the checksum that its key-value metadata declare.
func checkDeclared(kv map[string]string, footer []byte) error {
	if kv[KeyChecksums] != "" && !hasSum(footer) {
		return fmt.Errorf("%w: the footer has the key %s, but no checksum field", checksum.ErrDamaged, KeyChecksums)
	}
	return nil
}

// keyValues decodes the key-value metadata, of a type, into kv.
func keyValues(r thrift.Reader, t thrift.Type, kv map[string]string) error {
	if t != thrift.LIST {
		return skip(r, t, 1)
	}
	l, err := r.ReadList()
	if err != nil {
		return err
	}
	if l.Type != thrift.STRUCT {
		return fmt.Errorf("key-value metadata is a list of %v", l.Type)
	}
	for range l.Size {
		k, v, err := keyValue(r)
		if err != nil {
			return err
		}
		kv[k] = v
	}
	return nil
}

// keyValue decodes a KeyValue: key = 1, value = 2.
func keyValue(r thrift.Reader) (k, v string, err error) {
	err = fields(r, func(f thrift.Field) (err error) {
		switch {
		case f.ID == 1 && f.Type == thrift.BINARY:
			k, err = r.ReadString()
		case f.ID == 2 && f.Type == thrift.BINARY:
			v, err = r.ReadString()
		default:
			err = skip(r, f.Type, 1)
		}
		return err
	})
	return k, v, err
}

// fields calls visit for every field of a struct; visit reads the field's value.
func fields(r thrift.Reader, visit func(thrift.Field) error) error {
	id := int16(0)
	for {
		f, err := r.ReadField()
		if err != nil || f.Type == thrift.STOP {
			return err
		}
		if f.Delta {
			f.ID += id
		}
		id = f.ID
		if err := visit(f); err != nil {
			return err
		}
	}
}

// maxDepth bounds the nesting of a footer's values; Parquet's own are nested 6 deep.
const maxDepth = 16

var errDepth = errors.New("values are nested too deeply")

// skip skips the value of a field. Every value takes at least one byte, so a corrupt length fails
// at the end of the bytes.
func skip(r thrift.Reader, t thrift.Type, depth int) (err error) {
	if depth > maxDepth {
		return errDepth
	}
	switch t {
	case thrift.TRUE, thrift.FALSE: // the type is the value
	case thrift.I8:
		_, err = r.ReadInt8()
	case thrift.I16, thrift.I32, thrift.I64:
		_, err = r.ReadInt64()
	case thrift.DOUBLE:
		_, err = r.ReadFloat64()
	case thrift.BINARY:
		_, err = r.ReadBytes()
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = r.ReadList(); err == nil {
			err = skipItems(r, l.Size, depth+1, l.Type)
		}
	case thrift.MAP:
		var m thrift.Map
		if m, err = r.ReadMap(); err == nil {
			err = skipItems(r, m.Size, depth+1, m.Key, m.Value)
		}
	case thrift.STRUCT:
		err = fields(r, func(f thrift.Field) error { return skip(r, f.Type, depth+1) })
	default:
		err = fmt.Errorf("unknown thrift type %d", t)
	}
	return err
}

// skipItems skips n values of each of types. A boolean in a container takes a byte.
func skipItems(r thrift.Reader, n int32, depth int, types ...thrift.Type) error {
	for range n {
		for _, t := range types {
			if t == thrift.TRUE || t == thrift.FALSE {
				t = thrift.I8
			}
			if err := skip(r, t, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
