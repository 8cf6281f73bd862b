package sqsqueue

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/store/queue"
)

// metrics count what SQS charges for: every attempt of a request, and the chunks of its payload.
type metrics struct {
	requests *prometheus.CounterVec // by queue, op, status
	chunks   *prometheus.CounterVec // by queue, op
}

// newMetrics registers the counters with reg, unless it is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_queue_"}
	return &metrics{
		requests: f.Counters("requests_total", "Requests to queues, repeated ones included, by HTTP status.", "queue", "op", "status"),
		chunks:   f.Counters("chunks_total", "64 KiB chunks of payload in requests to queues, at least one a request: what SQS charges.", "queue", "op"),
	}
}

// Operations as they stand in metrics.
const (
	opSend    = "send"
	opReceive = "receive"
	opDelete  = "delete"
	opRelease = "release"
	opCount   = "count"
)

type payloadKey struct{}

// payload describes a call in its context.
type payload struct {
	op    string
	bytes int // of message bodies in the request
}

func withPayload(ctx context.Context, op string, bytes int) context.Context {
	return context.WithValue(ctx, payloadKey{}, payload{op, bytes})
}

// counting is an HTTP client that counts its requests.
type counting struct {
	queue string
	met   *metrics
	next  aws.HTTPClient
}

// Do implements aws.HTTPClient.
func (c counting) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 {
		r.Body = &exactBody{r.Body, r.ContentLength}
	}
	resp, err := c.next.Do(r)
	p, ok := r.Context().Value(payloadKey{}).(payload)
	if !ok { // credentials
		return resp, err
	}
	status := "error"
	if err == nil {
		status = strconv.Itoa(resp.StatusCode)
	}
	c.met.requests.WithLabelValues(c.queue, p.op, status).Inc()
	c.met.chunks.WithLabelValues(c.queue, p.op).Add(float64(queue.Chunks(p.bytes)))
	return resp, err
}

// exactBody ends after left bytes without another read. The SDK closes a request's body when the
// head of the answer has arrived; net/http may read the body once more to find its end, would take
// the error for a failed request, and would close the connection in the middle of the answer.
type exactBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *exactBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// regionOf returns the region in the name of an AWS host, or "".
func regionOf(host string) string {
	labels := strings.Split(host, ".")
	for i, l := range labels {
		if l != "amazonaws" || i < 2 {
			continue
		}
		switch { // sqs.REGION.amazonaws.com, x.sqs.REGION.vpce.amazonaws.com, REGION.queue.amazonaws.com
		case labels[i-1] == "queue", labels[i-1] == "vpce":
			return labels[i-2]
		}
		return labels[i-1]
	}
	return ""
}
