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

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// abortTimeout bounds the removal of the parts of a failed upload. Parts that remain cost storage
// until a lifecycle rule of the bucket (AbortIncompleteMultipartUpload) removes them.
const abortTimeout = 10 * time.Second

// upload is a multipart upload whose parts are there. Unlike the SDK's transfer manager it does not
// copy the body into memory.
type upload struct {
	*bucket
	name  string
	id    *string
	parts []types.CompletedPart
}

// StageAbove implements remote.Stager.
func (b *bucket) StageAbove() int64 { return partBytes }

// Stage implements remote.Stager. The parts are uploaded concurrently.
func (b *bucket) Stage(ctx context.Context, name string, body *io.SectionReader, token string) (remote.Upload, error) {
	u := &upload{bucket: b, name: name}
	encryption, kms := b.encryption()
	err := u.attempt(ctx, "create multipart upload", func() error {
		out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &b.config.Bucket, Key: &name, Metadata: metadata(token), ChecksumAlgorithm: b.checksum,
			ServerSideEncryption: encryption, SSEKMSKeyId: kms,
		})
		if err == nil {
			u.id = out.UploadId
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	size := partSize(body.Size())
	u.parts = make([]types.CompletedPart, (body.Size()+size-1)/size)
	g, uploading := errgroup.WithContext(ctx)
	g.SetLimit(partConcurrency)
	for i := range u.parts {
		off, number := int64(i)*size, int32(i+1)
		g.Go(func() error {
			return u.attempt(uploading, fmt.Sprintf("upload part %d", number), func() error {
				part := io.NewSectionReader(body, off, min(size, body.Size()-off))
				out, err := b.client.UploadPart(uploading, &s3.UploadPartInput{
					Bucket: &b.config.Bucket, Key: &name, UploadId: u.id, PartNumber: &number, Body: part,
				})
				if err == nil {
					u.parts[i] = types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
				}
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, u.Drop(ctx))
	}
	return u, nil
}

// attempt sends a request that commits nothing, and names it in an error.
func (u *upload) attempt(ctx context.Context, what string, request func() error) error {
	if _, _, err := remote.Attempt(ctx, u.policy, u.Fault, request); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// partSize returns the size of the parts of an object: for those with too many parts of the usual
// size, the smallest one that suffices.
func partSize(object int64) int64 { return max(partBytes, (object+maxParts-1)/maxParts) }

// Commit implements remote.Upload: S3 checks the condition now, and the object appears.
func (u *upload) Commit(ctx context.Context, cond objstore.Condition) (string, error) {
	absent, match := conditions(cond)
	out, err := u.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.config.Bucket, Key: &u.name, UploadId: u.id, IfNoneMatch: absent, IfMatch: match,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	if err != nil {
		return "", fmt.Errorf("complete multipart upload: %w", err)
	}
	return aws.ToString(out.ETag), nil
}

// Drop implements remote.Upload. It removes the parts, even if ctx has ended.
func (u *upload) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	err := u.attempt(ctx, "abort multipart upload", func() error {
		_, err := u.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.config.Bucket, Key: &u.name, UploadId: u.id})
		return err
	})
	if u.Fault(err).Lost {
		return nil
	}
	return err
}
