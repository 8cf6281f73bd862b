// Package s3store stores objects in a bucket of S3, or of a server with S3's protocol including
// conditional writes (If-None-Match: * and If-Match on PutObject and CompleteMultipartUpload).
//
// Transient failures are retried after a random wait; a body that breaks is resumed where it broke.
// A retried conditional write can conflict with its own first attempt; put.go describes how that is
// detected.
package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/remote"
)

var _ objstore.Store = (*Store)(nil)

// Store is an objstore.Store in a bucket.
type Store struct {
	config Config
	names  remote.Names
	client *s3.Client
	policy remote.Policy
	retry  aws.Retryer
	// retryComplete is retry without 409: S3 requires a new multipart upload after a conflict.
	retryComplete aws.Retryer
	// checksum is the algorithm that the SDK uses for the parts of an upload, which the upload must
	// announce; "" for none.
	checksum types.ChecksumAlgorithm
}

// New returns the store. It sends no request; a missing bucket is reported by the first operation.
func New(ctx context.Context, config Config) (*Store, error) {
	c, err := config.normalize()
	if err != nil {
		return nil, fmt.Errorf("configure S3 store: %w", err)
	}
	s := &Store{config: c, policy: remote.Policy{MaxAttempts: c.MaxAttempts, MinBackoff: c.MinBackoff, MaxBackoff: c.MaxBackoff}}
	if c.Prefix != "" {
		s.names = remote.Names(c.Prefix + "/")
	}
	s.retry = newRetryer(s.policy, aws.TrueTernary)
	s.retryComplete = newRetryer(s.policy, aws.FalseTernary)
	loaded, err := awsconfig.LoadDefaultConfig(ctx, s.loadOptions()...)
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	if loaded.Region == "" && c.Endpoint == "" {
		return nil, errors.New("configure S3 store: region: set in neither the configuration nor the AWS environment")
	}
	loaded.Region = cmp.Or(loaded.Region, "us-east-1")
	s.client = s3.NewFromConfig(loaded, s.clientOptions)
	if s.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		s.checksum = types.ChecksumAlgorithmCrc32
	}
	return s, nil
}

func (s *Store) loadOptions() []func(*awsconfig.LoadOptions) error {
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(remote.NewClient(s.config.Timeout, s.config.IdleConnections)),
		// its warnings are also returned as errors, or are followed by a retry
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
	// S3 sends a checksum with whole objects that were stored with one, but not with ranges. A body
	// that was resumed is not checked.
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if s.config.Endpoint != "" {
		o.BaseEndpoint = aws.String(s.config.Endpoint)
		// Some servers do not support AWS's trailing checksums. TLS, or without it the signature,
		// protects the body.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
}

func (s *Store) name(key string) *string { return aws.String(s.names.Name(key)) }

func (s *Store) bucket() *string { return aws.String(s.config.Bucket) }

// Delete implements objstore.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	err := s.names.Begin(ctx, key)
	if err == nil {
		_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket(), Key: s.name(key)})
	}
	if err != nil && errorCode(err) != codeNoSuchKey {
		return fmt.Errorf("delete %q: %w", key, remote.Contextual(ctx, err))
	}
	return nil
}
