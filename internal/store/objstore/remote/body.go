package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/promlake/promlake/internal/format/checksum"
)

// body reads the bytes from pos to end of one version of an object. If a connection breaks, it
// requests the rest.
type body struct {
	ctx      context.Context
	key      string
	pos, end int64
	policy   Policy
	r        io.ReadCloser                         // nil after a failure
	resume   func(offset, n int64) (Answer, error) // requests n bytes from offset of the same version; nil: not possible
	cause    error                                 // the last failure
	failures int                                   // since the last byte that was read
	damage   error                                 // not nil: the bytes do not match the answer's checksum
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.damage != nil {
		return 0, b.damage
	}
	if len(p) == 0 && b.pos < b.end {
		return 0, nil
	}
	for b.pos < b.end {
		if b.r == nil {
			if err := b.reopen(); err != nil {
				return 0, fmt.Errorf("read %q at byte %d of %d: %w", b.key, b.pos, b.end, Contextual(b.ctx, err))
			}
		}
		n, err := b.r.Read(p[:min(int64(len(p)), b.end-b.pos)])
		b.pos += int64(n)
		if n > 0 {
			b.failures = 0
		}
		if err != nil && b.pos < b.end {
			b.fail(err)
		}
		if b.pos == b.end {
			if b.damage = b.ended(err); b.damage != nil {
				// without the last bytes: a caller that reads exactly the object's size would not
				// see the error
				return 0, b.damage
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// ended is called after the last byte, with the error that came with it. Clients compare an answer
// with its checksum at the answer's end, so body reads to that end, unless the answer continues
// after the requested range.
func (b *body) ended(err error) error {
	if err == nil {
		var more [1]byte
		_, err = b.r.Read(more[:])
	}
	switch {
	case err == nil, err == io.EOF:
		return nil
	case b.ctx.Err() != nil:
		return fmt.Errorf("read %q to its end: %w", b.key, Contextual(b.ctx, err))
	default:
		return fmt.Errorf("read %q to its end: %w: %w", b.key, checksum.ErrDamaged, err)
	}
}

// fail closes the connection after an error or a premature end.
func (b *body) fail(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.cause = errors.Join(err, b.r.Close())
	b.r = nil
	b.failures++
}

// reopen requests the rest of the object.
func (b *body) reopen() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.failures >= b.policy.MaxAttempts || b.resume == nil {
		return fmt.Errorf("%d failures without progress: %w", b.failures, b.cause)
	}
	if b.failures > 1 {
		if err := b.policy.Wait(b.ctx, b.failures-1); err != nil {
			return err
		}
	}
	a, err := b.resume(b.pos, b.end-b.pos)
	if err != nil {
		return errors.Join(fmt.Errorf("resume: %w", err), b.cause)
	}
	first, _, err := a.extent()
	if err == nil && first != b.pos {
		err = fmt.Errorf("resume: requested bytes from %d, got bytes from %d", b.pos, first)
	}
	if err != nil {
		return errors.Join(err, a.Body.Close())
	}
	b.r = a.Body
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.r == nil {
		return nil
	}
	return b.r.Close()
}
