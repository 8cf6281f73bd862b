package sqsqueue

import (
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

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
