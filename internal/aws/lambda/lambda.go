// Package lambda converts the events of AWS Lambda to calls of ordinary Go handlers, and their
// results to Lambda's answers. It supports HTTP requests of an API Gateway HTTP API (payload format
// 2.0), of a Function URL and of a Remote, which invokes functions; batches of SQS messages;
// schedules of EventBridge; and commands of operators. It is independent of what the handlers do.
package lambda

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/promlake/promlake/internal/base/settings"
)

// Handlers are the handlers of a function. An event of a kind without a handler fails with
// ErrEvent. If Concurrency is more than 1, handlers are called concurrently.
type Handlers struct {
	// HTTP handles requests of an HTTP API, of a Function URL and of a Remote.
	HTTP http.Handler
	// Messages handles a batch of SQS messages. failed are the IDs of messages to be delivered
	// again; an error means all. For a FIFO queue, failed must contain all messages of a group from
	// the first failed one on, or their order is lost.
	Messages func(ctx context.Context, batch []Message) (failed []string, err error)
	// Schedule runs scheduled work. at is the time of the schedule, not of the call. After an error
	// Lambda tries again later.
	Schedule func(ctx context.Context, at time.Time) error
	// Command does what an operator orders with an event that has the member "command". event is
	// the whole event, valid until Command returns. The answer is encoded as JSON.
	Command func(ctx context.Context, event []byte) (answer any, err error)
	// Before runs before each invocation.
	Before func(ctx context.Context)
	// After runs after the handler of each invocation and before its answer ends, because Lambda
	// freezes the process after the answer.
	After func(ctx context.Context)
	// Shutdown runs once, when the runtime ends the process. Lambda kills the process shutdownTime
	// after its signal.
	Shutdown func(ctx context.Context) error
}

// Message is a message of an SQS queue.
type Message struct {
	ID       string    // unique in its queue
	Handle   string    // of this delivery
	Queue    string    // ARN
	Body     string    // as sent
	Group    string    // of a FIFO queue; else ""
	Sent     time.Time // when the queue accepted it, in whole ms
	Receives int       // number of deliveries, including this one
}

// Event is a kind of event.
type Event string

// Kinds of events; the strings are label values of metrics.
const (
	HTTPAPI     Event = "http_api"     // API Gateway HTTP API, payload format 2.0
	FunctionURL Event = "function_url" // Function URL
	Direct      Event = "invoke"       // HTTP request of a Remote: payload format 2.0 with a domain name of its own
	SQS         Event = "sqs"          // batch of messages
	Schedule    Event = "schedule"     // EventBridge rule or EventBridge Scheduler
	Command     Event = "command"      // `aws lambda invoke` with an object that has the member "command"
)

// Invocation describes the invocation of a context.
type Invocation struct {
	ID    string // Lambda's request ID, as in its own log lines
	Event Event
	Start time.Time // when the event arrived
	// Principal is the ARN of the sender whose signature AWS has verified: the userArn of
	// requestContext.authorizer.iam of an HTTP request ("Create AWS Lambda proxy integrations for
	// HTTP APIs" in the developer guide of API Gateway, "Invoking Lambda function URLs" in that of
	// Lambda). It is "" if the route or the URL does not require IAM.
	Principal string
}

type invocationKey struct{}

// Current returns the invocation of ctx; false if ctx has none.
func Current(ctx context.Context) (Invocation, bool) {
	i, ok := ctx.Value(invocationKey{}).(Invocation)
	return i, ok
}

// WithInvocation returns a context with the invocation i.
func WithInvocation(ctx context.Context, i Invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, i)
}

// Running reports whether this process runs in AWS Lambda or an emulator of it.
func Running() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// Concurrency returns the largest number of concurrent invocations of this process: 1, except on
// Managed Instances.
func Concurrency() int { return lambdacontext.MaxConcurrency() }

// MemoryBytes returns the function's memory size, or 0 outside of Lambda.
func MemoryBytes() int64 {
	mb, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil || mb < 0 {
		return 0
	}
	return mb << 20
}

// shutdownTime is the time that an internal extension has between SIGTERM and SIGKILL, less a
// margin to end in order.
const shutdownTime = 450 * time.Millisecond

// Settings configure the answers of a function. The tags are those of package settings; their
// limits are AWS Lambda's ("Lambda quotas" in its developer guide).
type Settings struct {
	Streaming bool `name:"lambda.streaming" negatable:"" default:"false" help:"The function's URL has InvokeMode RESPONSE_STREAM and streams its answers. Answers to the HTTP API are never streamed." when:"Only together with the URL's InvokeMode. The query function has it on by default."`
	// MaxAnswerBytes leaves room for the error that replaces a larger answer.
	MaxAnswerBytes int64         `name:"lambda.max-answer-bytes" type:"bytes" default:"6291556" min:"4KiB" max:"6291556" help:"Largest answer that is not streamed, in bytes of JSON." when:"Rarely."`
	MaxStreamBytes int64         `name:"lambda.max-stream-bytes" type:"bytes" default:"200MiB" min:"4KiB" help:"Largest streamed answer, in bytes." when:"Raise it if AWS raised your quota."`
	GatewayTimeout time.Duration `name:"lambda.http-api-timeout" default:"29s" above:"0" help:"Longest duration of a request through the HTTP API, which gives up after 30s." when:"Rarely."`
	Margin         time.Duration `name:"lambda.deadline-margin" default:"500ms" min:"0" help:"Time before the function's deadline at which work ends, so that the error can still be answered. At most a quarter of the time left." when:"Raise it if functions time out without an answer."`
}

// Validate reports every setting that makes no sense, by the name of its flag.
func (s Settings) Validate() error { return settings.Check(s) }
