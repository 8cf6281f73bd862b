package s3store

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// Get implements objstore.Store. It sends one request, and a second one for what a ranged GET of S3
// cannot express (empty ranges, and suffixes of empty objects), or if the first one is denied.
func (s *Store) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := s.get(ctx, key, offset, length)
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("get %q: %w", key, remote.Contextual(ctx, err))
	}
	return r, o, nil
}

func (s *Store) get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if err := s.names.Begin(ctx, key); err != nil {
		return nil, objstore.Object{}, err
	}
	if length == 0 {
		return s.getNothing(ctx, key, offset)
	}
	in := &s3.GetObjectInput{Bucket: s.bucket(), Key: s.name(key)}
	if span := remote.RangeHeader(offset, length); span != "" {
		in.Range = &span
	}
	out, err := s.client.GetObject(ctx, in)
	switch code := errorCode(err); {
	case code == codeInvalidRange && offset < 0:
		return s.getNothing(ctx, key, offset) // it is empty
	case code == codeInvalidRange:
		return nil, objstore.Object{}, objstore.ErrRange
	case err != nil:
		return nil, objstore.Object{}, s.unread(ctx, key, err)
	}
	b, o, err := remote.Open(ctx, s.policy, key, answer(out), offset, length, s.resume(ctx, key, out.ETag))
	if err != nil {
		return nil, objstore.Object{}, err
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

// answer returns what a body needs of the answer to a GET.
func answer(out *s3.GetObjectOutput) remote.Answer {
	return remote.Answer{
		Body: out.Body, Range: aws.ToString(out.ContentRange), Unsealed: out.ContentLength == nil,
		Object: objstore.Object{Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)},
	}
}

// resume returns how to request the rest of a version. A version without an ETag cannot be resumed.
func (s *Store) resume(ctx context.Context, key string, etag *string) remote.Resume {
	if aws.ToString(etag) == "" {
		return nil
	}
	return func(offset, n int64) (remote.Answer, error) {
		out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
			Bucket: s.bucket(), Key: s.name(key), Range: aws.String(remote.RangeHeader(offset, n)), IfMatch: etag,
		})
		if err != nil {
			return remote.Answer{}, err
		}
		return answer(out), nil
	}
}
