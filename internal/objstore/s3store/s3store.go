// Package s3store keeps objects in a bucket of S3 or of a server that speaks its protocol,
// conditional writes included (If-None-Match: * and If-Match on PutObject and
// CompleteMultipartUpload).
//
// Requests that fail for a reason that may pass are repeated after a random wait; bodies that break
// are continued from where they broke. A conditional write that is repeated can meet its own first
// attempt; see put.go for how it knows.
package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"

	"github.com/promlake/promlake/internal/objstore"
)

// socketBuffer is the size of each connection's read and write buffers in bytes: fewer system calls
// per range.
const socketBuffer = 64 << 10

var _ objstore.Store = (*Store)(nil)

// Store is an objstore.Store in a bucket.
type Store struct {
	config  Config
	prefix  string // of all keys: "" or ending in a slash
	client  *s3.Client
	backoff backoff
	retry   aws.Retryer
	// retryComplete is retry without 409: S3 wants a conflicting multipart upload to begin anew.
	retryComplete aws.Retryer
	// checksum is what the SDK adds to the parts of an upload, which the upload has to announce: ""
	// for nothing.
	checksum types.ChecksumAlgorithm
}

// New returns the store. It sends no request; a bucket that is missing shows at the first
// operation.
func New(ctx context.Context, config Config) (*Store, error) {
	c, err := config.normalize()
	if err != nil {
		return nil, fmt.Errorf("configure S3 store: %w", err)
	}
	s := &Store{config: c, backoff: backoff{min: c.MinBackoff, max: c.MaxBackoff}}
	if c.Prefix != "" {
		s.prefix = c.Prefix + "/"
	}
	s.retry = newRetryer(c, s.backoff, retryConflict)
	s.retryComplete = newRetryer(c, s.backoff, keepConflict)
	loaded, err := awsconfig.LoadDefaultConfig(ctx, s.loadOptions()...)
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	if loaded.Region == "" && c.Endpoint == "" {
		return nil, errors.New("configure S3 store: region: neither the configuration nor the AWS environment names one")
	}
	if loaded.Region == "" {
		loaded.Region = "us-east-1"
	}
	s.client = s3.NewFromConfig(loaded, s.clientOptions)
	if s.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		s.checksum = types.ChecksumAlgorithmCrc32
	}
	return s, nil
}

func (s *Store) loadOptions() []func(*awsconfig.LoadOptions) error {
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(newHTTPClient(s.config)),
		// it warns of what comes back as an error, or is tried again
		awsconfig.WithLogger(logging.Nop{}),
	}
	if s.config.Region != "" {
		opts = append(opts, awsconfig.WithRegion(s.config.Region))
	}
	if s.config.AccessKey != "" {
		p := credentials.NewStaticCredentialsProvider(s.config.AccessKey, s.config.SecretKey, "")
		opts = append(opts, awsconfig.WithCredentialsProvider(p))
	}
	return opts
}

func (s *Store) clientOptions(o *s3.Options) {
	o.UsePathStyle = s.config.PathStyle
	o.Retryer = s.retry
	// S3 sends a checksum with whole objects, if they were put with one, and not with ranges. A
	// body that is resumed is not checked.
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if s.config.Endpoint != "" {
		o.BaseEndpoint = aws.String(s.config.Endpoint)
		// Not all servers know AWS's trailing checksums. TLS, or without it the signature, protects
		// the body.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
}

func newHTTPClient(c Config) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithReadTimeout(c.Timeout).WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = c.IdleConnections
		t.MaxIdleConnsPerHost = c.IdleConnections
		t.ReadBufferSize = socketBuffer
		t.WriteBufferSize = socketBuffer
	})
}

// begin is the entry check of every operation on a key.
func (s *Store) begin(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := objstore.ValidKey(key); err != nil {
		return err
	}
	if n := len(s.prefix) + len(key); n > objstore.MaxKeyLen {
		return fmt.Errorf("%w: with the store's prefix it has %d bytes, the limit is %d", objstore.ErrInvalidKey, n, objstore.MaxKeyLen)
	}
	return nil
}

func (s *Store) name(key string) *string { return aws.String(s.prefix + key) }

func (s *Store) bucket() *string { return aws.String(s.config.Bucket) }

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.begin(ctx, key)
	if err == nil {
		_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket(), Key: s.name(key)})
	}
	if err != nil && errorCode(err) != codeNoSuchKey {
		return fmt.Errorf("delete %q: %w", key, contextual(ctx, err))
	}
	return nil
}

// keyOf strips the store's prefix off a listed name. Names that are no valid keys, such as the
// folder markers that consoles make, are not the store's.
func (s *Store) keyOf(name string) (key string, ok bool) {
	key, ok = strings.CutPrefix(name, s.prefix)
	return key, ok && objstore.ValidKey(key) == nil
}
