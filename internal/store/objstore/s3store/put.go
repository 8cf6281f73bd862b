package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// tokenName is the user metadata (x-amz-meta-…) that identifies the call that wrote an object.
const tokenName = "promlake-write"

// write is one call of Put.
//
// When the answer to a conditional write is lost, S3 may reject the next attempt because of the
// first one: with 412, or with NoSuchUpload if the first attempt completed an upload. So such
// writes store a random token with their object. After a rejection that follows an ambiguous
// attempt, they read the token of the object: their own token means success. Another token does not
// show whether this write took effect and was overwritten. That is reported as a failure with
// unknown effect, never as ErrPrecondition, because a caller may undo its work when a condition
// does not hold.
type write struct {
	store *Store
	key   string
	cond  objstore.Condition
	token string   // "" for unconditional writes of one request, which can be repeated safely
	tried attempts // of all requests that could have committed the write
}

// Put implements objstore.Store.
func (s *Store) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	etag, err := s.put(ctx, key, body, cond)
	if err != nil {
		return "", fmt.Errorf("put %q: %w", key, remote.Contextual(ctx, err))
	}
	return etag, nil
}

func (s *Store) put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if err := s.names.Begin(ctx, key); err != nil {
		return "", err
	}
	if cond.IfAbsent && cond.IfMatch != "" {
		return "", objstore.ErrPrecondition
	}
	start, size, err := remote.Measure(body)
	if err != nil {
		return "", err
	}
	w := &write{store: s, key: key, cond: cond}
	parts := size > s.config.MultipartAbove
	if parts || cond != (objstore.Condition{}) {
		w.token = rand.Text()
	}
	if parts {
		return w.multipart(ctx, body, start, size)
	}
	return w.single(ctx, body)
}

func (w *write) single(ctx context.Context, body io.ReadSeeker) (string, error) {
	encryption, kms := w.store.encryption()
	out, err := w.store.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket:      w.store.bucket(),
		Key:         w.store.name(w.key),
		Body:        remote.Guarded{ReadSeeker: body},
		IfNoneMatch: w.ifNoneMatch(),
		IfMatch:     w.ifMatch(),
		Metadata:    w.metadata(),

		ServerSideEncryption: encryption, SSEKMSKeyId: kms,
	}, s3.WithAPIOptions(w.tried.record))
	if err != nil {
		return w.settle(ctx, err)
	}
	return aws.ToString(out.ETag), nil
}

// settle interprets the error of the request that commits the write.
func (w *write) settle(ctx context.Context, err error) (string, error) {
	code := errorCode(err)
	refused := code == codePrecondition || code == codeNoSuchKey && w.cond.IfMatch != ""
	switch {
	case !refused && code != codeNoSuchUpload:
		return "", err
	case refused && !w.tried.ambiguous():
		return "", fmt.Errorf("%w: %w", objstore.ErrPrecondition, err)
	}
	head, herr := w.store.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: w.store.bucket(), Key: w.store.name(w.key)})
	switch {
	case herr == nil && head.Metadata[tokenName] == w.token:
		return aws.ToString(head.ETag), nil
	case herr != nil:
		return "", errors.Join(fmt.Errorf("%w, %w", remote.ErrUnknownEffect, err), fmt.Errorf("check for own write: %w", herr))
	}
	return "", fmt.Errorf("%w, %w", remote.ErrUnknownEffect, err)
}

// encryption returns the encryption of new objects, which is the bucket's default without a key.
func (s *Store) encryption() (types.ServerSideEncryption, *string) {
	if s.config.KMSKey == "" {
		return "", nil
	}
	return types.ServerSideEncryptionAwsKms, &s.config.KMSKey
}

func (w *write) ifNoneMatch() *string {
	if w.cond.IfAbsent {
		return aws.String("*")
	}
	return nil
}

func (w *write) ifMatch() *string {
	if w.cond.IfMatch != "" {
		return aws.String(w.cond.IfMatch)
	}
	return nil
}

func (w *write) metadata() map[string]string {
	if w.token == "" {
		return nil
	}
	return map[string]string{tokenName: w.token}
}
