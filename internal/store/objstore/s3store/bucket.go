package s3store

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// tokenName is the user metadata (x-amz-meta-…) that identifies the call that wrote an object.
const tokenName = "promlake-write"

// bucket is a remote.Protocol.
type bucket struct {
	config Config
	policy remote.Policy
	client *s3.Client
	// checksum is the algorithm that the SDK uses for the parts of an upload, which the upload must
	// announce; "" for none.
	checksum types.ChecksumAlgorithm
}

var _ remote.Stager = (*bucket)(nil)

// Get implements remote.Protocol.
func (b *bucket) Get(ctx context.Context, name string, offset, length int64, etag string) (remote.Answer, error) {
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &b.config.Bucket, Key: &name, Range: remote.Optional(remote.RangeHeader(offset, length)), IfMatch: remote.Optional(etag),
	})
	if err != nil {
		return remote.Answer{}, err
	}
	return remote.Answer{
		Body: out.Body, Range: aws.ToString(out.ContentRange), Unsealed: out.ContentLength == nil,
		Object: objstore.Object{Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)},
	}, nil
}

// Head implements remote.Protocol.
func (b *bucket) Head(ctx context.Context, name string) (o objstore.Object, token string, err error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.config.Bucket, Key: &name})
	if err != nil {
		return o, "", err
	}
	o = objstore.Object{Size: aws.ToInt64(out.ContentLength), ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}
	return o, out.Metadata[tokenName], nil
}

// Put implements remote.Protocol.
func (b *bucket) Put(ctx context.Context, name string, body *io.SectionReader, cond objstore.Condition, token string) (string, error) {
	encryption, kms := b.encryption()
	absent, match := conditions(cond)
	out, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.config.Bucket, Key: &name, Body: body, IfNoneMatch: absent, IfMatch: match, Metadata: metadata(token),
		ServerSideEncryption: encryption, SSEKMSKeyId: kms,
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Delete implements remote.Protocol.
func (b *bucket) Delete(ctx context.Context, name string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.config.Bucket, Key: &name})
	return err
}

// List implements remote.Protocol. A page has up to 1,000 objects.
func (b *bucket) List(ctx context.Context, prefix, start string, folders bool, token string) (page []objstore.Object, next string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.config.Bucket, Prefix: &prefix, StartAfter: remote.Optional(start), ContinuationToken: remote.Optional(token)}
	if folders {
		in.Delimiter = aws.String("/")
	}
	out, err := b.client.ListObjectsV2(ctx, in)
	if err != nil {
		return page, "", err
	}
	next = aws.ToString(out.NextContinuationToken)
	if folders {
		for _, p := range out.CommonPrefixes {
			page = append(page, objstore.Object{Key: aws.ToString(p.Prefix)})
		}
		return page, next, nil
	}
	for _, c := range out.Contents {
		page = append(page, objstore.Object{Key: aws.ToString(c.Key), Size: aws.ToInt64(c.Size), ETag: aws.ToString(c.ETag), Modified: aws.ToTime(c.LastModified)})
	}
	return page, next, nil
}

// transient are the SDK's conditions for another attempt.
var transient = retry.IsErrorRetryables(retry.DefaultRetryables)

// Fault implements remote.Protocol. Where a truncated answer ended decides which part of the SDK
// notices that.
func (b *bucket) Fault(err error) (f remote.Fault) {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		f.Status, f.Header = answer.HTTPStatusCode(), answer.HTTPResponse().Header
	}
	f.Again = transient.IsErrorRetryable(err) == aws.TrueTernary || errors.Is(err, io.ErrUnexpectedEOF) || f.Status == http.StatusTooManyRequests || f.Status == http.StatusRequestTimeout
	code := ""
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		code = e.ErrorCode()
	}
	switch code {
	case "NoSuchKey", "NotFound": // an answer to HEAD has no body with a more specific code
		f.Means = objstore.ErrNotFound
	case "AccessDenied", "Forbidden": // that of HEAD
		f.Means = remote.ErrDenied
	case "InvalidRange":
		f.Means = objstore.ErrRange
	case "PreconditionFailed":
		f.Means = objstore.ErrPrecondition
	case "ConditionalRequestConflict", "OperationAborted": // another write of the key is running
		f.Again, f.Stale = true, true
	case "NoSuchUpload":
		f.Lost = true
	}
	f.Refused = code == "SlowDown"
	f.Final = !f.Again
	return f
}

// encryption returns the encryption of new objects, which is the bucket's default without a key.
func (b *bucket) encryption() (types.ServerSideEncryption, *string) {
	if b.config.KMSKey == "" {
		return "", nil
	}
	return types.ServerSideEncryptionAwsKms, &b.config.KMSKey
}

func conditions(c objstore.Condition) (ifNoneMatch, ifMatch *string) {
	if c.IfAbsent {
		ifNoneMatch = aws.String("*")
	}
	return ifNoneMatch, remote.Optional(c.IfMatch)
}

func metadata(token string) map[string]string {
	if token == "" {
		return nil
	}
	return map[string]string{tokenName: token}
}
