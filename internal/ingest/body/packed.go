package body

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"
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
)

// ReadPacked reads the body of a tenant's request that is compressed by a packing. The form is what
// it decompresses to. The charge and the errors are those of Read.
func (r *Reader) ReadPacked(w http.ResponseWriter, req *http.Request, tenant string, p Packing, form string) (*Message, *Charge, error) {
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

// unpack reads the body. The memory of what is compressed is charged as it grows, since no header
// states its size.
func (r *Reader) unpack(req *http.Request, in *Paced, c *Charge, p Packing, form string) (*Message, error) {
	sent, err := r.receive(in, nil, req.ContentLength, func(more int64) error { return c.Await(req.Context(), r.limits.InflightWait, more, false) })
	defer func() { recycle(sent) }()
	if err != nil {
		return nil, err
	}
	in.End()
	u, err := unpackerOf(p, sent)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, p, err)
	}
	m, n, charged := messageOf(0), int64(0), int64(0)
	for size, ended := u.first(), false; !ended; size *= 4 {
		size = min(size, r.limits.MaxDecodedBytes+1)
		total := size + r.Ahead(size)
		if err := c.Await(req.Context(), r.limits.InflightWait, total-charged, true); err != nil {
			m.Release()
			return nil, err
		}
		charged = total
		larger := messageOf(int(size))
		copy(larger.Bytes, m.Bytes[:n])
		m.Release()
		m = larger
		if n, ended, err = u.fill(m.Bytes, n); err != nil {
			m.Release()
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, cmp.Or(string(p), form), err)
		}
		if n > r.limits.MaxDecodedBytes {
			m.Release()
			return nil, &TooLarge{Limit: "max-decoded-bytes", Max: r.limits.MaxDecodedBytes}
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

func unpackerOf(p Packing, sent []byte) (unpacker, error) {
	switch p {
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
