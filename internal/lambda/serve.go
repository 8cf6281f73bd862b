package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// ErrNotInLambda reports that there is no runtime to serve.
var ErrNotInLambda = errors.New("AWS_LAMBDA_RUNTIME_API is not set: this process does not run in AWS Lambda")

// Serve takes the events of the Lambda runtime that this process runs in until the runtime ends the
// process with SIGTERM. Then it calls h.Shutdown and returns its error. The base of every
// invocation's context is ctx, whose end is not heeded: what was accepted is answered. A runtime
// that goes away ends the process.
func Serve(ctx context.Context, h Handlers, s Settings, log *slog.Logger) error {
	if !Running() {
		return ErrNotInLambda
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	f := &function{h: h, set: s, log: log}
	terminated := make(chan struct{})
	go awslambda.StartWithOptions(f.handler(), awslambda.WithContext(ctx), awslambda.WithEnableSIGTERM(func() { close(terminated) }))
	<-terminated
	if h.Shutdown == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	if err := f.guarded(ctx, func() error { return h.Shutdown(ctx) }); err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}

// handler is the form in which aws-lambda-go takes the function. Only a function with results of
// its own type may answer in streams, and its events pass through encoding/json, which costs about
// 10 ms per MB; so the form that gets bytes is used wherever nothing streams.
func (f *function) handler() any {
	if f.set.Streaming {
		return f.streaming
	}
	return f
}

// Invoke implements aws-lambda-go's Handler.
func (f *function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	whole, _, err := f.handle(ctx, payload)
	return whole, err
}

func (f *function) streaming(ctx context.Context, payload document) (any, error) {
	whole, stream, err := f.handle(ctx, payload)
	switch {
	case err != nil:
		return nil, err
	case stream != nil:
		return stream, nil
	}
	return &wholeAnswer{*bytes.NewReader(whole), whole}, nil
}

// document is JSON that is not decoded.
type document []byte

// UnmarshalJSON implements json.Unmarshaler.
func (d *document) UnmarshalJSON(b []byte) error {
	*d = bytes.Clone(b)
	return nil
}

// wholeAnswer is JSON that aws-lambda-go passes on as it is.
type wholeAnswer struct {
	bytes.Reader
	memory []byte
}

// Close is called when the answer was sent.
func (a *wholeAnswer) Close() error {
	giveBuffer(a.memory)
	a.memory = nil
	a.Reset(nil)
	return nil
}

// ContentType tells aws-lambda-go what the reader yields.
func (*wholeAnswer) ContentType() string { return "application/json" }

// MarshalJSON fails, which makes aws-lambda-go read the answer instead of encoding it.
func (*wholeAnswer) MarshalJSON() ([]byte, error) { return nil, errors.New("already encoded") }
