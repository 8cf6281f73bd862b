package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile/delta"
)

// WordReader reads runs of values of a chunk of a flat INT64 or DOUBLE column, and skips the values
// between them. Pages of which no value is read are not decompressed and, if they are long, not
// read from the file; of other pages only the necessary part is decoded. The zero value is ready.
// It is not safe for concurrent use.
type WordReader struct {
	pages  PageReader
	dict   []uint64
	left   int  // values of the current page that were neither read nor skipped
	skip   int  // values to skip in the current page before the next read
	loaded bool // the current page is decompressed

	encoding format.Encoding
	plain    []byte
	delta    delta.Reader
	runs     hybridReader
}

// Reset starts the chunk at s, which has the given number of values. Errors: ErrFormat, and those
// of in.
func (r *WordReader) Reset(in io.ReaderAt, s Span, values int64) error {
	r.left, r.skip, r.loaded, r.dict = 0, 0, false, r.dict[:0]
	return r.pages.Reset(in, s, values)
}

// ResetPages starts a chunk whose pages Jump finds, as that of PageReader does.
func (r *WordReader) ResetPages(in io.ReaderAt, dict Span) error {
	r.left, r.skip, r.loaded, r.dict = 0, 0, false, r.dict[:0]
	return r.pages.ResetPages(in, dict)
}

// Jump moves to the page at an offset of the file, as that of PageReader does.
func (r *WordReader) Jump(at, end, values int64) {
	r.left, r.skip, r.loaded = 0, 0, false
	r.pages.Jump(at, end, values)
}

// Extend lets the reader go on, as that of PageReader does.
func (r *WordReader) Extend(end, values int64) { r.pages.Extend(end, values) }

// Skip skips n values.
func (r *WordReader) Skip(n int64) error {
	for n > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return err
			}
		}
		k := int(min(n, int64(r.left)))
		r.left -= k
		r.skip += k
		n -= int64(k)
	}
	return nil
}

// Int64s reads the next len(dst) values of an INT64 column.
func (r *WordReader) Int64s(dst []int64) error {
	return r.words(wordsOf(dst))
}

// Doubles reads the next len(dst) values of a DOUBLE column.
func (r *WordReader) Doubles(dst []float64) error {
	return r.words(wordsOf(dst))
}

// Equal skips at most limit values that are equal bit for bit. It returns those bits and the number
// of values, which is 0 if the next values may differ: then read them.
func (r *WordReader) Equal(limit int) (bits uint64, n int, err error) {
	if limit == 0 {
		return 0, 0, nil
	}
	if err := r.ready(); err != nil || r.encoding != format.RLEDictionary {
		return 0, 0, err
	}
	if err := r.runs.skip(r.skip); err != nil {
		return 0, 0, err
	}
	r.skip = 0
	bits, n, err = r.runs.equal(min(limit, r.left), r.dict)
	r.left -= n
	return bits, n, err
}

// ready advances to a page with unread values, if necessary, and decompresses it.
func (r *WordReader) ready() error {
	if r.left == 0 {
		if err := r.next(); err != nil {
			return err
		}
	}
	if r.loaded {
		return nil
	}
	return r.load()
}

func (r *WordReader) words(dst []uint64) error {
	for len(dst) > 0 {
		if err := r.ready(); err != nil {
			return err
		}
		n := min(len(dst), r.left)
		if err := r.decode(dst[:n]); err != nil {
			return err
		}
		dst = dst[n:]
		r.left -= n
		r.skip = 0
	}
	return nil
}

// next advances to the next page.
func (r *WordReader) next() error {
	n, err := r.pages.Next()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: values: %w", ErrFormat, errCut)
	}
	r.left, r.skip, r.loaded = n, 0, false
	return err
}

// load decompresses the current page.
func (r *WordReader) load() error {
	// The dictionary comes first, because reading it moves the window that a page may alias.
	if format.Encoding(r.pages.head.encoding) == format.RLEDictionary && len(r.dict) == 0 {
		b, n, err := r.pages.Dictionary()
		if err != nil {
			return err
		}
		if r.dict, err = appendWords(r.dict, b, n); err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
	}
	p, err := r.pages.Load()
	if err != nil {
		return err
	}
	r.loaded, r.encoding = true, p.Encoding
	switch p.Encoding {
	case format.Plain:
		if len(p.Values) != 8*p.Entries {
			return fmt.Errorf("%w: %d bytes of %d values", ErrFormat, len(p.Values), p.Entries)
		}
		r.plain = p.Values
		return nil
	case format.DeltaBinaryPacked:
		return asFormat(r.delta.Reset(p.Values, p.Entries))
	case format.RLEDictionary:
		return r.runs.reset(p.Values)
	}
	return p.unsupported("numbers")
}

// decode applies the pending skip and decodes the next len(dst) values of the page.
func (r *WordReader) decode(dst []uint64) error {
	switch r.encoding {
	case format.Plain:
		b := r.plain[8*r.skip:]
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		r.plain = b[8*len(dst):]
		return nil
	case format.DeltaBinaryPacked:
		if err := r.delta.Skip(r.skip); err != nil {
			return asFormat(err)
		}
		return asFormat(r.delta.Read(dst))
	}
	if err := r.runs.skip(r.skip); err != nil {
		return err
	}
	return r.runs.read(dst, r.dict)
}
