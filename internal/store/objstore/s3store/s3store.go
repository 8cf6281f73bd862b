// Package s3store stores objects in a bucket of S3, or of a server with S3's protocol including
// conditional writes (If-None-Match: * and If-Match on PutObject and CompleteMultipartUpload).
//
// Larger objects are uploaded in parts.
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

	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// Store is an objstore.Store in a bucket.
type Store struct {
	*remote.Store
	client *s3.Client
}

// New returns the store. It sends no request; a missing bucket is reported by the first operation.
func New(ctx context.Context, config Config) (*Store, error) {
	c, err := config.normalize()
	if err != nil {
		return nil, fmt.Errorf("configure S3 store: %w", err)
	}
	b := &bucket{config: c, policy: remote.Policy{MaxAttempts: c.MaxAttempts, MinBackoff: c.MinBackoff, MaxBackoff: c.MaxBackoff}}
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(remote.NewClient(c.Timeout, c.IdleConnections)),
		// its warnings are also returned as errors, or are followed by a retry
		awsconfig.WithLogger(logging.Nop{}),
	}
	if c.Region != "" {
		opts = append(opts, awsconfig.WithRegion(c.Region))
	}
	if c.AccessKey != "" {
		p := credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, "")
		opts = append(opts, awsconfig.WithCredentialsProvider(p))
	}
	loaded, err := awsconfig.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	if loaded.Region == "" && c.Endpoint == "" {
		return nil, errors.New("configure S3 store: region: set in neither the configuration nor the AWS environment")
	}
	loaded.Region = cmp.Or(loaded.Region, "us-east-1")
	b.client = s3.NewFromConfig(loaded, c.clientOptions)
	if b.client.Options().RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
		b.checksum = types.ChecksumAlgorithmCrc32
	}
	store, err := remote.New(b, c.Prefix, b.policy)
	return &Store{store, b.client}, err
}

func (c Config) clientOptions(o *s3.Options) {
	o.UsePathStyle = c.PathStyle
	o.Retryer = aws.NopRetryer{} // package remote repeats requests
	// S3 sends a checksum with whole objects that were stored with one, but not with ranges. A body
	// that was resumed is not checked.
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if c.Endpoint != "" {
		o.BaseEndpoint = aws.String(c.Endpoint)
		// Some servers do not support AWS's trailing checksums. TLS, or without it the signature,
		// protects the body.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
}
