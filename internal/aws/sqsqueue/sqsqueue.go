// Package sqsqueue is a queue.Sender and queue.Receiver on Amazon SQS, or on a server that
// implements its JSON protocol.
//
// A request that fails with a transient error is repeated after a random wait; if only a part of
// its messages failed, only that part is sent again. A request that is repeated because its answer
// was lost sends its messages twice; consumers tolerate that.
package sqsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/store/queue"
)

var (
	_ queue.Sender   = (*Queue)(nil)
	_ queue.Receiver = (*Queue)(nil)
)

// Queue is one queue. It is safe for concurrent use.
type Queue struct {
	url    string
	name   string // the last element of the URL
	config config
	met    *metrics

	connect func() (*sqs.Client, error) // once, at first use
	patient aws.HTTPClient              // for Receive: a connection that waits for a message is not dead
}

// Open returns the queue with this URL, such as
// https://sqs.eu-central-1.amazonaws.com/123456789012/name. It sends no request and reads no
// configuration; the first use reads it from AWS's usual sources. The region is that of the URL's
// host or of the environment. A URL with a host that is not AWS's is its own endpoint, unless
// AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_SQS sets another. Queues with the same reg share their
// counters there; nil publishes none:
//
//	promlake_queue_requests_total{queue,op,status}  attempts of requests by HTTP status,
//	                                                "error" if there was no answer
//	promlake_queue_chunks_total{queue,op}           64 KiB chunks of their payloads, at least one
//	                                                per request: the number that SQS charges
func Open(rawURL string, reg prometheus.Registerer) (*Queue, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return nil, fmt.Errorf("open queue: want https://host/account/name, got %q", rawURL)
	}
	c := config{
		region: regionOf(u.Hostname()), maxAttempts: 5,
		minBackoff: 50 * time.Millisecond, maxBackoff: 2 * time.Second, silence: 10 * time.Second,
	}
	host := u.Hostname()
	if c.region == "" || !strings.HasPrefix(host, "sqs") && !strings.Contains(host, ".queue.amazonaws.") {
		c.endpoint = u.Scheme + "://" + u.Host
	}
	q := &Queue{url: rawURL, name: path.Base(u.Path), config: c, met: newMetrics(reg)}
	q.patient = counting{q.name, q.met, newHTTPClient(q.config.silence + maxWait)}
	q.connect = sync.OnceValues(func() (*sqs.Client, error) {
		opts := []func(*awsconfig.LoadOptions) error{
			awsconfig.WithLogger(logging.Nop{}), // it warns of what comes back as an error, or is tried again
		}
		if q.config.region != "" {
			opts = append(opts, awsconfig.WithRegion(q.config.region))
		}
		loaded, err := awsconfig.LoadDefaultConfig(context.Background(), opts...)
		if err != nil {
			return nil, fmt.Errorf("load AWS configuration: %w", err)
		}
		if loaded.Region == "" && q.config.endpoint == "" {
			return nil, errors.New("configure queue: region: neither the URL nor the AWS environment names one")
		}
		loaded.Region = cmp.Or(loaded.Region, "us-east-1")
		return sqs.NewFromConfig(loaded, func(o *sqs.Options) {
			o.HTTPClient = counting{q.name, q.met, newHTTPClient(q.config.silence)}
			o.Retryer = newRetryer(q.config)
			if o.BaseEndpoint == nil && q.config.endpoint != "" {
				o.BaseEndpoint = aws.String(q.config.endpoint)
			}
		}), nil
	})
	return q, nil
}

// config is what a queue's client runs by.
type config struct {
	region      string        // "" is that of the environment
	endpoint    string        // of a host that is not AWS's; "" is AWS's own
	maxAttempts int           // of one request, and of what failed of a batch
	minBackoff  time.Duration // upper end of the first random wait between attempts, which doubles
	maxBackoff  time.Duration // upper end of all of them
	silence     time.Duration // longest silence of a connection that waits for an answer, beyond what Receive waits for a message
}

// maxWait is the longest time that SQS lets a Receive wait for a message.
const maxWait = 20 * time.Second

// delay is the wait after the failed attempt n, counted from 1: "full jitter" in
// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
func (c config) delay(n int) time.Duration {
	return time.Duration(rand.Float64() * math.Min(float64(c.maxBackoff), float64(c.minBackoff)*math.Exp2(float64(n-1))))
}

func newHTTPClient(silence time.Duration) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = silence })
}

// newRetryer is the SDK's standard retryer, its budget against retry storms included, with our
// waits.
func newRetryer(c config) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = c.maxAttempts, c.maxBackoff
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return c.delay(attempt), nil })
		o.Retryables = append(o.Retryables, retry.RetryableErrorCode{Codes: map[string]struct{}{"KmsThrottled": {}}},
			retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusTooManyRequests: {}, http.StatusRequestTimeout: {}}})
	})
}
