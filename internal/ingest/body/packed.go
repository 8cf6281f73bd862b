package body

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
)

// Packing is how a body is compressed. The text is that of the header Content-Encoding.
type Packing string

// The packings.
const (
	Plain   Packing = ""
	Gzip    Packing = "gzip"
	Zstd    Packing = "zstd"
	Deflate Packing = "deflate" // the zlib format
	Snappy  Packing = "snappy"  // a block, without a frame
)

// Read reads the body of a tenant's request that is compressed by a packing. The form is what it
// decompresses to. The charge is for the message and what is granted ahead. The caller releases
// both.
func (r *Reader) Read(w http.ResponseWriter, req *http.Request, tenant string, p Packing, form string) (*Message, *Charge, error) {
	if req.ContentLength > r.limits.MaxRequestBytes {
		return nil, nil, &TooLarge{"max-request-bytes", r.limits.MaxRequestBytes, req.ContentLength}
	}
	in, c := r.paced(w, req), r.budget.Admit(tenant)
	m, err := r.unpack(req, in, c, p, form)
	if err != nil {
		c.Release()
		return nil, nil, err
	}
	return m, c, nil
}

// unpack reads the body. The memory of what is compressed is charged as it grows, whatever its
// header states.
func (r *Reader) unpack(req *http.Request, in *Paced, c *Charge, p Packing, form string) (m *Message, err error) {
	sent, err := r.receive(req, in, c)
	defer func() { recycle(sent) }()
	if err != nil {
		return nil, err
	}
	in.End()
	defer func() {
		if err != nil {
			m.Release()
			m = nil
		}
	}()
	invalid := func(err error) error { return fmt.Errorf("%w: %s: %w", ErrInvalid, cmp.Or(string(p), form), err) }
	u, err := r.unpackerOf(p, sent)
	if _, large := errors.AsType[*TooLarge](err); large {
		return nil, err
	}
	if err != nil {
		return nil, invalid(err)
	}
	n, charged := int64(0), int64(0)
	for size, ended := u.first(), false; !ended; size *= 4 {
		size = min(size, r.limits.MaxDecodedBytes+1)
		total := size + r.Ahead(size)
		if err := c.Await(req.Context(), r.limits.InflightWait, total-charged, true); err != nil {
			return m, err
		}
		charged, m = total, m.larger(size, n)
		if n, ended, err = u.fill(m.Bytes, n); err != nil {
			return m, invalid(err)
		}
		if n > r.limits.MaxDecodedBytes {
			return m, &TooLarge{Limit: "max-decoded-bytes", Max: r.limits.MaxDecodedBytes}
		}
	}
	m.Bytes = m.Bytes[:n]
	if p == Plain {
		r.bytes.WithLabelValues(form).Add(float64(len(sent)))
	} else {
		r.bytes.WithLabelValues(string(p)).Add(float64(len(sent)))
		r.bytes.WithLabelValues(form).Add(float64(n))
	}
	c.Settle(n + r.Ahead(n))
	return m, nil
}

// An unpacker decompresses into memory of the caller, to which more is added.
type unpacker interface {
	// first is the size (bytes) of the memory to begin with.
	first() int64
	// fill fills b, of which n bytes are filled, and returns how many are. It reports whether that
	// is all.
	fill(b []byte, n int64) (filled int64, ended bool, err error)
}

func (r *Reader) unpackerOf(p Packing, sent []byte) (unpacker, error) {
	switch p {
	case Snappy:
		return blockOf(sent, r.limits.MaxDecodedBytes)
	case Gzip:
		z, err := gzip.NewReader(bytes.NewReader(sent))
		return stream{z, len(sent)}, err
	case Deflate:
		z, err := zlib.NewReader(bytes.NewReader(sent))
		return stream{z, len(sent)}, err
	case Zstd:
		most, err := mostOf(sent)
		return frames{sent, most}, err
	}
	return stream{bytes.NewReader(sent), len(sent)}, nil
}

// stream reads on where it ended.
type stream struct {
	io.Reader
	sent int // bytes
}

func (s stream) first() int64 { return int64(s.sent) + 1 } // one more byte, to see the end

func (s stream) fill(b []byte, n int64) (_ int64, ended bool, err error) {
	for n < int64(len(b)) {
		got, err := s.Read(b[n:])
		n += int64(got)
		switch {
		case errors.Is(err, io.EOF):
			return n, true, nil
		case err != nil:
			return n, false, err
		}
	}
	return n, false, nil
}

// block is a block of snappy, which begins with the decoded length.
type block struct {
	sent    []byte
	decoded int64 // bytes
}

// maxExpansion is the most that a snappy block can grow: a copy of 64 bytes takes 3 (google/snappy,
// format_description.txt). A header that claims more is refused before any memory is set aside.
const maxExpansion = 22

// blockOf returns a block that decodes to at most so many bytes.
func blockOf(sent []byte, most int64) (block, error) {
	n, err := snappy.DecodedLen(sent)
	switch {
	case err != nil:
		return block{}, err
	case int64(n) > most:
		return block{}, &TooLarge{"max-decoded-bytes", most, int64(n)}
	case n > len(sent)*maxExpansion:
		return block{}, fmt.Errorf("%d bytes cannot hold the %d bytes that they claim", len(sent), n)
	}
	return block{sent, int64(n)}, nil
}

func (b block) first() int64 { return b.decoded }

func (b block) fill(into []byte, _ int64) (int64, bool, error) {
	_, err := snappy.Decode(into, b.sent)
	return b.decoded, true, err
}
