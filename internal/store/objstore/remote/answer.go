package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Answer is the answer to a request for a range of an object.
type Answer struct {
	Body     io.ReadCloser
	Range    string          // Content-Range; "" if Body is the whole object
	Object   objstore.Object // without Range, with the size
	Unsealed bool            // the answer has no size
}

// open returns a reader of the range of key for the answer to its request, and describes the
// object. A nil resume means that a broken body cannot be resumed.
func open(ctx context.Context, p Policy, key string, a Answer, offset, length int64, resume func(offset, n int64) (Answer, error)) (*body, objstore.Object, error) {
	o := a.Object
	o.Key = key
	first, size, err := a.extent()
	if err != nil {
		return nil, o, err
	}
	o.Size = size
	start, n, err := objstore.Span(offset, length, size)
	if err != nil {
		return nil, o, err
	}
	if first > start {
		return nil, o, fmt.Errorf("requested bytes from %d, got bytes from %d", start, first)
	}
	if _, err := io.CopyN(io.Discard, a.Body, start-first); err != nil {
		return nil, o, fmt.Errorf("skip to offset: %w", err)
	}
	return &body{ctx: ctx, key: key, pos: start, end: start + n, policy: p, r: a.Body, resume: resume}, o, nil
}

// extent returns the offset of the first byte, which is 0 if the server does not support ranges and
// sends the whole object, and the object's size.
func (a Answer) extent() (first, size int64, err error) {
	switch {
	case a.Range != "":
		return parseContentRange(a.Range)
	case a.Unsealed:
		return 0, 0, errors.New("the answer does not have the object's size")
	}
	return 0, a.Object.Size, nil
}

// RangeHeader returns the Range header of a GET with length > 0 or to the end; "" means the whole
// object. A suffix is requested whole, regardless of length, because the position of its first byte
// is unknown.
func RangeHeader(offset, length int64) string {
	switch {
	case offset < 0:
		return "bytes=-" + strconv.FormatInt(-max(offset, -math.MaxInt64), 10)
	case length >= 0:
		last := min(offset, math.MaxInt64-length) + length - 1
		return fmt.Sprintf("bytes=%d-%d", offset, max(last, offset))
	case offset > 0:
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return ""
}

// parseContentRange parses "bytes first-last/size". Test servers answer an empty range with a last
// byte before the first one, where the services refuse it.
func parseContentRange(v string) (first, size int64, err error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(v, "bytes "), "/")
	from, to, _ := strings.Cut(span, "-")
	first, ferr := strconv.ParseInt(from, 10, 64)
	last, lerr := strconv.ParseInt(to, 10, 64)
	size, serr := strconv.ParseInt(total, 10, 64)
	if !ok || ferr != nil || lerr != nil || serr != nil || first < 0 || last >= size || last < first-1 {
		return 0, 0, fmt.Errorf("parse Content-Range %q", v)
	}
	return first, size, nil
}
