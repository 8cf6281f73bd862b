package lambda

import (
	"time"

	"github.com/promlake/promlake/internal/base/settings"
)

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
