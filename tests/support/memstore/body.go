package memstore

import (
	"bytes"
	"context"
	"errors"
	"io"
)

var errClosed = errors.New("read after close")

// body reads an object; an injected fault makes it fail midway.
type body struct {
	ctx    context.Context
	r      *bytes.Reader
	err    error // returned after the bytes of r; nil means io.EOF
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, errClosed
	}
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

func (b *body) Close() error {
	b.closed = true
	return nil
}
