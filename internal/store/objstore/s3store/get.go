package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Get implements objstore.Store. It sends one request, and a second one for what a ranged GET of S3
// cannot express (empty ranges, and suffixes of empty objects), or if the first one is denied.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := s.get(ctx, key, offset, length)
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, contextual(ctx, err))
	}
	return r, o, nil
}

func (s *Store) get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if err := s.begin(ctx, key); err != nil {
		return nil, objstore.Object{}, err
	}
	if length == 0 {
		return s.getNothing(ctx, key, offset)
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: s.bucket(), Key: s.name(key), Range: rangeHeader(offset, length)})
	switch code := errorCode(err); {
	case code == codeInvalidRange && offset < 0:
		return s.getNothing(ctx, key, offset) // it is empty
	case code == codeInvalidRange:
		return nil, objstore.Object{}, objstore.ErrRange
	case err != nil:
		return nil, objstore.Object{}, s.unread(ctx, key, err)
	}
	b, o, err := s.open(ctx, key, out, offset, length)
	if err != nil {
		return nil, objstore.Object{}, errors.Join(err, out.Body.Close())
	}
	return b, o, nil
}

// getNothing opens a range that has no bytes.
func (s *Store) getNothing(ctx context.Context, key string, offset int64) (io.ReadCloser, objstore.Object, error) {
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket(), Key: s.name(key)})
	if err != nil {
		return nil, objstore.Object{}, s.unread(ctx, key, err)
	}
	o := objstore.Object{
		Key: key, Size: aws.ToInt64(head.ContentLength), ETag: aws.ToString(head.ETag), Modified: aws.ToTime(head.LastModified),
	}
	if _, _, err := objstore.Span(offset, 0, o.Size); err != nil {
		return nil, objstore.Object{}, err
	}
	return http.NoBody, o, nil
}

// unread returns the error of a Get for the error of a request that reads an object. The object may
// be missing although the request was denied: S3 does not tell a caller without the permission to
// list that an object does not exist, and not every server with its protocol considers a permission
// that is limited to a prefix of keys. A listing of the key, which such a caller may request, tells.
func (s *Store) unread(ctx context.Context, key string, err error) error {
	switch errorCode(err) {
	case codeNoSuchKey, codeNotFound:
		return objstore.ErrNotFound
	case codeAccessDenied, codeForbidden:
	default:
		return err
	}
	for o, lerr := range s.List(ctx, key, "") {
		if lerr != nil || o.Key == key {
			return err
		}
		break // the key itself would be the first one
	}
	return objstore.ErrNotFound
}

// open returns a body that reads the answer to a GET for the range.
func (s *Store) open(ctx context.Context, key string, out *s3.GetObjectOutput, offset, length int64) (*body, objstore.Object, error) {
	o := objstore.Object{Key: key, ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}
	// offset of the answer's first byte: 0 if the server does not support ranges and sends the
	// whole object
	var first int64
	var err error
	if out.ContentRange != nil {
		first, o.Size, err = parseContentRange(*out.ContentRange)
	} else if o.Size = aws.ToInt64(out.ContentLength); out.ContentLength == nil {
		err = errors.New("the answer does not have the object's size")
	}
	if err != nil {
		return nil, objstore.Object{}, err
	}
	start, n, err := objstore.Span(offset, length, o.Size)
	if err != nil {
		return nil, objstore.Object{}, err
	}
	if first > start {
		return nil, objstore.Object{}, fmt.Errorf("requested bytes from %d, got bytes from %d", start, first)
	}
	if _, err := io.CopyN(io.Discard, out.Body, start-first); err != nil {
		return nil, objstore.Object{}, fmt.Errorf("skip to offset: %w", err)
	}
	return &body{store: s, ctx: ctx, key: key, etag: o.ETag, pos: start, end: start + n, r: out.Body}, o, nil
}

// rangeHeader returns the Range header of a GET with length > 0 or to the end; nil means the whole
// object. A suffix is requested whole, regardless of length, because the position of its first byte
// is unknown.
func rangeHeader(offset, length int64) *string {
	switch {
	case offset < 0:
		return aws.String("bytes=-" + strconv.FormatInt(-max(offset, -math.MaxInt64), 10))
	case length >= 0:
		last := min(offset, math.MaxInt64-length) + length - 1
		return aws.String(fmt.Sprintf("bytes=%d-%d", offset, max(last, offset)))
	case offset > 0:
		return aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	return nil
}

// parseContentRange parses "bytes first-last/size".
func parseContentRange(v string) (first, size int64, err error) {
	span, total, ok := strings.Cut(strings.TrimPrefix(v, "bytes "), "/")
	from, _, dash := strings.Cut(span, "-")
	first, ferr := strconv.ParseInt(from, 10, 64)
	size, serr := strconv.ParseInt(total, 10, 64)
	if !ok || !dash || ferr != nil || serr != nil || first < 0 || size <= first {
		return 0, 0, fmt.Errorf("parse Content-Range %q", v)
	}
	return first, size, nil
}
