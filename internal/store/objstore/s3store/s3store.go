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

	"github.com/promlake/promlake/internal/store/objstore/remote"
)

// Store is an objstore.Store in a bucket.
type Store struct {
	*remote.Store
	client *s3.Client
}

// New returns the store. It sends no request; a missing bucket is reported by the first operation.
func New(ctx context.Context, c Config) (*Store, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure S3 store: %w", err)
	}
	b := &bucket{config: c, policy: cmp.Or(c.Policy, remote.DefaultPolicy)}
	opts := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(remote.NewClient(cmp.Or(c.Timeout, time.Minute), idleConnections)),
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
	if err != nil {
		return nil, fmt.Errorf("configure S3 store: %w", err)
	}
	return &Store{store, b.client}, nil
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
	partBytes       = 16 << 20 // of a part; larger objects are uploaded in parts
	partConcurrency = 4        // concurrent uploads of parts of one object
	maxParts        = 10_000   // S3's limit
	idleConnections = 128
)

// Config is the location of a store and how to access it. Only Bucket is required.
type Config struct {
	Bucket string
	Prefix string // of all keys in the bucket; "" is the whole bucket

	Region    string // "" is the region of the AWS environment, or us-east-1 with an Endpoint
	Endpoint  string // URL of an S3-compatible server; "" is AWS
	PathStyle bool   // endpoint/bucket/key instead of bucket.endpoint/key
	AccessKey string // with SecretKey; "" uses the AWS credential chain
	SecretKey string
	KMSKey    string // ID or ARN of the KMS key that encrypts objects; "" is the bucket's default

	Policy remote.Policy // the zero value is remote.DefaultPolicy
	// maximum time without bytes of a connection that waits for an answer or reads it; 0 is 1m
	Timeout time.Duration
}

// validate returns an error for every invalid field.
func (c Config) validate() error {
	var errs []error
	if c.Bucket == "" || strings.ContainsAny(c.Bucket, "/?#") {
		errs = append(errs, fmt.Errorf("bucket: want a bucket's name, got %q", c.Bucket))
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		errs = append(errs, errors.New("access key, secret key: want both or none"))
	}
	return errors.Join(append(errs, checkEndpoint(c.Endpoint))...)
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
