package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithytime "github.com/aws/smithy-go/time"

	"github.com/promlake/promlake/internal/format/checksum"
)

// body reads the bytes from pos to end of one version of an object. If a connection breaks, it
// requests the rest, on condition that the object still has the same version.
type body struct {
	store    *Store
	ctx      context.Context
	key      string
	etag     string
	pos, end int64
	r        io.ReadCloser // nil after a failure
	cause    error         // the last failure
	failures int           // since the last byte that was read
	damage   error         // not nil: the bytes do not match the answer's checksum
}

func (b *body) Read(p []byte) (int, error) {
	if b.damage != nil {
		return 0, b.damage
	}
	if len(p) == 0 && b.pos < b.end {
		return 0, nil
	}
	for b.pos < b.end {
		if b.r == nil {
			if err := b.resume(); err != nil {
				return 0, fmt.Errorf("read %q at byte %d of %d: %w", b.key, b.pos, b.end, contextual(b.ctx, err))
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

// ended is called after the last byte, with the error that came with it. The client compares an
// answer with S3's checksum at the answer's end, so body reads to that end, unless the answer
// continues after the requested range.
func (b *body) ended(err error) error {
	if err == nil {
		var more [1]byte
		_, err = b.r.Read(more[:])
	}
	switch {
	case err == nil, err == io.EOF:
		return nil
	case b.ctx.Err() != nil:
		return fmt.Errorf("read %q to its end: %w", b.key, contextual(b.ctx, err))
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

// resume requests the rest of the object.
func (b *body) resume() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if b.failures >= b.store.config.MaxAttempts || b.etag == "" {
		return fmt.Errorf("%d failures without progress: %w", b.failures, b.cause)
	}
	if b.failures > 1 {
		if err := smithytime.SleepWithContext(b.ctx, b.store.backoff.delay(b.failures-1)); err != nil {
			return err
		}
	}
	out, err := b.store.client.GetObject(b.ctx, &s3.GetObjectInput{
		Bucket:  b.store.bucket(),
		Key:     b.store.name(b.key),
		Range:   aws.String(fmt.Sprintf("bytes=%d-%d", b.pos, b.end-1)),
		IfMatch: aws.String(b.etag),
	})
	if err != nil {
		return errors.Join(fmt.Errorf("resume: %w", err), b.cause)
	}
	first, _, err := parseContentRange(aws.ToString(out.ContentRange))
	if err == nil && first != b.pos {
		err = fmt.Errorf("resume: requested bytes from %d, got bytes from %d", b.pos, first)
	}
	if err != nil {
		return errors.Join(err, out.Body.Close())
	}
	b.r = out.Body
	return nil
}

func (b *body) Close() error {
	if b.r == nil {
		return nil
	}
	return b.r.Close()
}
