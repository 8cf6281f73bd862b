package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// abortTimeout bounds the removal of the parts of a failed upload. Parts that remain cost storage
// until a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes them.
const abortTimeout = 10 * time.Second

// upload is a multipart upload of a write. Unlike the SDK's transfer manager it does not copy the
// body into memory.
type upload struct {
	*write
	id *string
}

// multipart uploads size bytes of body from start. After a conflict, S3 requires a new upload.
func (w *write) multipart(ctx context.Context, body io.ReadSeeker, start, size int64) (string, error) {
	section := remote.Section(body, start, size)
	for attempt := 1; ; attempt++ {
		etag, err := w.uploadOnce(ctx, section)
		if !isConflict(err) || attempt == w.store.config.MaxAttempts {
			return etag, err
		}
		if serr := w.store.policy.Wait(ctx, attempt); serr != nil {
			return "", errors.Join(serr, err)
		}
	}
}

func (w *write) uploadOnce(ctx context.Context, src *io.SectionReader) (string, error) {
	encryption, kms := w.store.encryption()
	out, err := w.store.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: w.store.bucket(), Key: w.store.name(w.key), Metadata: w.metadata(), ChecksumAlgorithm: w.store.checksum,
		ServerSideEncryption: encryption, SSEKMSKeyId: kms,
	})
	if err != nil {
		return "", fmt.Errorf("create multipart upload: %w", err)
	}
	u := &upload{write: w, id: out.UploadId}
	parts, err := u.parts(ctx, src)
	if err != nil {
		return "", errors.Join(err, u.abort(ctx))
	}
	etag, err := u.complete(ctx, parts)
	if err == nil {
		return etag, nil
	}
	aborted := u.abort(ctx) // even if settle finds that an earlier upload of this write succeeded
	etag, err = w.settle(ctx, err)
	if err != nil {
		return "", errors.Join(err, aborted)
	}
	return etag, nil
}

// parts uploads the parts concurrently and returns them in order.
func (u *upload) parts(ctx context.Context, src *io.SectionReader) ([]types.CompletedPart, error) {
	size := partSize(src.Size(), u.store.config.PartSize)
	parts := make([]types.CompletedPart, (src.Size()+size-1)/size)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(u.store.config.PartConcurrency)
	for i := range parts {
		off := int64(i) * size
		g.Go(func() (err error) {
			parts[i], err = u.part(ctx, int32(i+1), io.NewSectionReader(src, off, min(size, src.Size()-off)))
			return err
		})
	}
	return parts, g.Wait()
}

func (u *upload) part(ctx context.Context, number int32, src *io.SectionReader) (types.CompletedPart, error) {
	if err := ctx.Err(); err != nil {
		return types.CompletedPart{}, err
	}
	out, err := u.store.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: u.store.bucket(), Key: u.store.name(u.key), UploadId: u.id, PartNumber: &number, Body: remote.Guarded{ReadSeeker: src},
	})
	if err != nil {
		return types.CompletedPart{}, fmt.Errorf("upload part %d: %w", number, err)
	}
	return types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}, nil
}

// partSize returns the configured size or, for objects with too many parts, the smallest size that
// suffices.
func partSize(object, configured int64) int64 { return max(configured, (object+maxParts-1)/maxParts) }

// complete is the commit point of the write: S3 checks the condition now, and the object appears.
func (u *upload) complete(ctx context.Context, parts []types.CompletedPart) (string, error) {
	out, err := u.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:          u.store.bucket(),
		Key:             u.store.name(u.key),
		UploadId:        u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		IfNoneMatch:     u.ifNoneMatch(),
		IfMatch:         u.ifMatch(),
	}, s3.WithAPIOptions(u.tried.record), func(o *s3.Options) { o.Retryer = u.store.retryComplete })
	if err != nil {
		return "", fmt.Errorf("complete multipart upload: %w", err)
	}
	return aws.ToString(out.ETag), nil
}

// abort removes the parts, even if ctx has ended.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_, err := u.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: u.store.bucket(), Key: u.store.name(u.key), UploadId: u.id,
	})
	if err != nil && errorCode(err) != codeNoSuchUpload {
		return fmt.Errorf("abort multipart upload: %w", err)
	}
	return nil
}
