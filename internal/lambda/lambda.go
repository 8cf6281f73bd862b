// Package lambda turns the events of AWS Lambda into calls of ordinary Go handlers and their
// answers into what Lambda expects: HTTP requests of an API Gateway HTTP API (payload format 2.0)
// and of a Function URL, batches of SQS messages, and schedules of EventBridge. It knows nothing of
// what the handlers do.
package lambda

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// Handlers is what a function does. Events of a kind without a handler are refused with an error
// that says so. Where Concurrency is more than 1, all of them are called concurrently.
type Handlers struct {
	// HTTP answers requests of an HTTP API and of a Function URL.
	HTTP http.Handler
	// Messages takes a batch of SQS messages. failed are the IDs of those to be delivered again;
	// err means all of them. From a FIFO queue, all messages of a group from the first failed one
	// on must be in failed, or their order is lost.
	Messages func(ctx context.Context, batch []Message) (failed []string, err error)
	// Schedule runs what is due; at is the time that the schedule names, not that of the call. An
	// error makes Lambda try again later.
	Schedule func(ctx context.Context, at time.Time) error
	// Before runs before each invocation's work.
	Before func(ctx context.Context)
	// After runs after each invocation's work and before its answer ends: Lambda freezes the
	// process once the answer is out.
	After func(ctx context.Context)
	// Shutdown runs once, when the runtime ends the process; Lambda kills it shutdownTime after the
	// signal.
	Shutdown func(ctx context.Context) error
}

// Message is one message of an SQS queue.
type Message struct {
	ID       string    // unique in its queue
	Queue    string    // ARN
	Body     string    // as it was sent
	Group    string    // of a FIFO queue; else ""
	Sent     time.Time // when the queue took it, whole ms
	Receives int       // how often it was delivered, this time included
}

// Event is a kind of event.
type Event string

// Kinds of events; the texts are label values of metrics.
const (
	HTTPAPI     Event = "http_api"     // API Gateway HTTP API, payload format 2.0
	FunctionURL Event = "function_url" // Function URL
	SQS         Event = "sqs"          // batch of messages
	Schedule    Event = "schedule"     // EventBridge rule or EventBridge Scheduler
)

// Invocation tells about the call that a context belongs to.
type Invocation struct {
	ID    string // Lambda's request id, as in its own log lines
	Event Event
	Start time.Time // when the event arrived
}

type invocationKey struct{}

// Current returns the invocation that ctx belongs to.
func Current(ctx context.Context) (Invocation, bool) {
	i, ok := ctx.Value(invocationKey{}).(Invocation)
	return i, ok
}

// WithInvocation returns a context that belongs to i.
func WithInvocation(ctx context.Context, i Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, i)
}

// requestID is Lambda's id of the invocation, "" outside of Lambda.
func requestID(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}

// Running reports whether this process runs in AWS Lambda, or in something that behaves so.
func Running() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// Concurrency is how many invocations this process may have at once: 1 but on Managed Instances.
func Concurrency() int { return lambdacontext.MaxConcurrency() }

// MemoryBytes is the memory that the function was given, 0 outside of Lambda.
func MemoryBytes() int64 {
	mb, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil || mb < 0 {
		return 0
	}
	return mb << 20
}
