package lambda

import (
	"errors"
	"fmt"
	"time"
)

// Limits of AWS Lambda ("Lambda quotas" in its developer guide).
const (
	// maxPayload is the largest answer of an invocation that is not streamed, bytes of JSON.
	maxPayload = 6<<20 + 100
	// maxStream is the largest streamed answer in bytes.
	maxStream = 200 << 20
	// shutdownTime is what an internal extension has between SIGTERM and SIGKILL, less a little to
	// end in order.
	shutdownTime = 450 * time.Millisecond
)

// Settings say how answers leave. The tags are command-line flags.
type Settings struct {
	Streaming      bool          `name:"lambda.streaming" negatable:"" help:"The function's URL has InvokeMode RESPONSE_STREAM: its answers leave as they are written. Answers to the HTTP API never do."`
	MaxAnswerBytes int64         `name:"lambda.max-answer-bytes" type:"bytes" help:"Largest answer that is not streamed, as JSON: what AWS Lambda takes."`
	MaxStreamBytes int64         `name:"lambda.max-stream-bytes" type:"bytes" help:"Largest streamed answer: what AWS Lambda takes."`
	GatewayTimeout time.Duration `name:"lambda.http-api-timeout" help:"Longest time for a request of the HTTP API, which itself gives up after 30s."`
	Margin         time.Duration `name:"lambda.deadline-margin" help:"Work ends so long before the function's time is up that the error can still be answered; a quarter of the time left at most."`
}

// DefaultSettings are AWS Lambda's limits, without streaming.
func DefaultSettings() Settings {
	return Settings{
		MaxAnswerBytes: maxPayload,
		MaxStreamBytes: maxStream,
		GatewayTimeout: 29 * time.Second,
		Margin:         500 * time.Millisecond,
	}
}

// minAnswer (bytes) leaves room for the error that tells of a larger answer.
const minAnswer = 4096

// Validate reports every setting that makes no sense, by the name of its flag.
func (s Settings) Validate() error {
	var errs []error
	if s.MaxAnswerBytes < minAnswer || s.MaxAnswerBytes > maxPayload {
		errs = append(errs, fmt.Errorf("lambda.max-answer-bytes: want %d to %d, got %d", minAnswer, maxPayload, s.MaxAnswerBytes))
	}
	if s.MaxStreamBytes < minAnswer {
		errs = append(errs, fmt.Errorf("lambda.max-stream-bytes: want at least %d, got %d", minAnswer, s.MaxStreamBytes))
	}
	if s.GatewayTimeout <= 0 {
		errs = append(errs, fmt.Errorf("lambda.http-api-timeout: want more than 0s, got %s", s.GatewayTimeout))
	}
	if s.Margin < 0 {
		errs = append(errs, fmt.Errorf("lambda.deadline-margin: want 0s or more, got %s", s.Margin))
	}
	return errors.Join(errs...)
}
