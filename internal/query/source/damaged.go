package source

import (
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/format/segment"
)

// DamagedError reports an object that is there and cannot be read: bytes that do not match their
// checksum, or that violate the format.
type DamagedError struct {
	Object     string // key of a segment, prefix of a block
	MinT, MaxT int64  // ms, inclusive: no sample of the object is outside of it
	Err        error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("object %s, which holds samples from %s to %s, is damaged: %v; promlake doctor says what is lost, and --query.partial-response answers without it",
		e.Object, rfc3339(e.MinT), rfc3339(e.MaxT), e.Err)
}

// Unwrap returns the error about the bytes.
func (e *DamagedError) Unwrap() error { return e.Err }

// Warning is the warning in an answer without the object.
func (e *DamagedError) Warning() error {
	return fmt.Errorf("the answer is partial: object %s, which holds samples from %s to %s, is damaged and was left out: %w", e.Object, rfc3339(e.MinT), rfc3339(e.MaxT), e.Err)
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// Broken converts an error about wrong bytes of o to a DamagedError. It returns other errors
// unchanged, and adds the object to that of an unknown version, which no answer leaves out.
func (o *Ref) Broken(err error) error {
	var known *DamagedError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, checksum.ErrUnknownVersion) {
		return fmt.Errorf("object %s: %w", o.Name(), err)
	}
	for _, format := range []error{checksum.ErrDamaged, block.ErrFormat, segment.ErrFormat, rollup.ErrFormat, parquetfile.ErrFormat} {
		if errors.Is(err, format) {
			return &DamagedError{Object: o.Name(), MinT: o.from, MaxT: o.upto, Err: err}
		}
	}
	return err
}
