package parquetfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go/format"
)

// WordReader reads runs of values of one chunk of a flat column of INT64 or DOUBLE, and steps over
// those in between: pages that nothing is read of are neither decompressed nor, if they are long,
// read; of others only what is needed is decoded. The zero value is ready; it belongs to one
// goroutine.
type WordReader struct {
	pages  PageReader
	dict   []uint64
	left   int  // values of the current page that are not read yet
	skip   int  // of them, how many to step over before the next is read
	loaded bool // the current page is decompressed

	encoding format.Encoding
	plain    []byte
	delta    deltaReader
	runs     hybridReader
}

// Reset begins the chunk of so many values that lies at s in the file. Errors: ErrFormat, and those
// of in.
func (r *WordReader) Reset(in io.ReaderAt, s Span, values int64) error {
	r.left, r.skip, r.loaded, r.dict = 0, 0, false, r.dict[:0]
	return r.pages.Reset(in, s, values)
}

// dictionary decodes the dictionary of the chunk.
func (r *WordReader) dictionary() error {
	b, n, err := r.pages.Dictionary()
	if err != nil {
		return err
	}
	if len(b) != 8*n {
		return fmt.Errorf("%w: dictionary of %d bytes for %d values", ErrFormat, len(b), n)
	}
	r.dict = slices.Grow(r.dict, n)
	for ; len(b) >= 8; b = b[8:] {
		r.dict = append(r.dict, binary.LittleEndian.Uint64(b))
	}
	return nil
}

// Skip steps over n values.
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

// Int64s reads the next len(dst) values of a column of INT64.
func (r *WordReader) Int64s(dst []int64) error {
	return r.words(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)))
}

// Doubles reads the next len(dst) values of a column of DOUBLE.
func (r *WordReader) Doubles(dst []float64) error {
	return r.words(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)))
}

// Equal steps over at most limit values that are equal, bit for bit, and returns those bits and how
// many they are: 0 if the next values may differ, which are to be read then.
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

// ready makes a page with values that are not read yet the current one, and decompresses it.
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

// next goes on to the next page.
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
	// first, for the page may alias what reading moves
	if r.pages.Encoding() == format.RLEDictionary && len(r.dict) == 0 {
		if err := r.dictionary(); err != nil {
			return err
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
		return r.delta.reset(p.Values, p.Entries)
	case format.RLEDictionary:
		return r.runs.reset(p.Values)
	}
	return p.unsupported("numbers")
}

// decode steps over what is to be skipped and decodes the next len(dst) values of the page.
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
		if err := r.delta.skip(r.skip); err != nil {
			return err
		}
		return r.delta.read(dst)
	}
	if err := r.runs.skip(r.skip); err != nil {
		return err
	}
	return r.runs.read(dst, r.dict)
}
