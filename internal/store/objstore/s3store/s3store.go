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
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"

	"github.com/promlake/promlake/internal/store/objstore"
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

const (
	minPartSize = 5 << 20 // S3's limit, except for the last part
	maxPartSize = 5 << 30
	maxParts    = 10_000
)

// Config is the location of a store and how to access it. Only Bucket is required.
type Config struct {
	Bucket string
	// of all keys in the bucket, without leading and trailing slashes; "" is the whole bucket
	Prefix string

	Region    string // "" is the region of the AWS environment, or us-east-1 with an Endpoint
	Endpoint  string // URL of an S3-compatible server; "" is AWS
	PathStyle bool   // endpoint/bucket/key instead of bucket.endpoint/key
	AccessKey string // with SecretKey; "" uses the AWS credential chain
	SecretKey string
	KMSKey    string // ID or ARN of the KMS key that encrypts objects; "" is the bucket's default

	MaxAttempts int // of a request, and of a body without progress; 0 is 8
	// upper bound of the first random wait between attempts; it doubles each time; 0 is 50ms
	MinBackoff time.Duration
	MaxBackoff time.Duration // upper bound of all waits; 0 is 5s
	// maximum time without bytes of a connection that waits for an answer or reads it; 0 is 1m
	Timeout time.Duration

	MultipartAbove  int64 // bytes; larger objects are uploaded in parts; 0 is 16 MiB
	PartSize        int64 // bytes; larger for objects of more than 10,000 parts; 0 is 16 MiB
	PartConcurrency int   // concurrent uploads of parts of one object; 0 is 4
	IdleConnections int   // idle connections that are kept; 0 is 128
}

// normalize sets defaults and returns an error for every invalid field.
func (c Config) normalize() (Config, error) {
	c.Prefix = strings.Trim(c.Prefix, "/")
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 8)
	c.MinBackoff = cmp.Or(c.MinBackoff, 50*time.Millisecond)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, 5*time.Second), c.MinBackoff)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.MultipartAbove = cmp.Or(c.MultipartAbove, 16<<20)
	c.PartSize = cmp.Or(c.PartSize, 16<<20)
	c.PartConcurrency = cmp.Or(c.PartConcurrency, 4)
	c.IdleConnections = cmp.Or(c.IdleConnections, 128)
	var errs []error
	if c.Bucket == "" || strings.ContainsAny(c.Bucket, "/?#") {
		errs = append(errs, fmt.Errorf("bucket: want a bucket's name, got %q", c.Bucket))
	}
	if c.Prefix != "" {
		if err := objstore.ValidKey(c.Prefix); err != nil {
			errs = append(errs, fmt.Errorf("prefix: %w", err))
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, errors.New("access key, secret key: want both or none"))
	}
	if c.PartSize < minPartSize || c.PartSize > maxPartSize {
		errs = append(errs, fmt.Errorf("part size: want %d to %d bytes, got %d", minPartSize, int64(maxPartSize), c.PartSize))
	}
	errs = append(errs, checkEndpoint(c.Endpoint), atLeastOne("max attempts", int64(c.MaxAttempts)),
		atLeastOne("min backoff", int64(c.MinBackoff)), atLeastOne("max backoff", int64(c.MaxBackoff)), atLeastOne("timeout", int64(c.Timeout)),
		atLeastOne("multipart above", c.MultipartAbove), atLeastOne("part concurrency", int64(c.PartConcurrency)),
		atLeastOne("idle connections", int64(c.IdleConnections)))
	return c, errors.Join(errs...)
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("endpoint: want http://host:port or https://host:port, got %q", endpoint)
	}
	return nil
}

func atLeastOne(name string, v int64) error {
	if v < 1 {
		return fmt.Errorf("%s: want more than 0, got %d", name, v)
	}
	return nil
}
