package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	awslambda "github.com/aws/aws-lambda-go/lambda"
)

// ErrNotInLambda reports that this process has no Lambda runtime.
var ErrNotInLambda = errors.New("AWS_LAMBDA_RUNTIME_API is not set: this process does not run in AWS Lambda")

// Serve handles the events of this process's Lambda runtime until the runtime ends the process with
// SIGTERM. Then it calls h.Shutdown and returns its error. Contexts of invocations derive from ctx
// but ignore its end, because accepted events must be answered. If the runtime becomes unreachable,
// the process ends.
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

// handler returns the function in a form that aws-lambda-go accepts. Only a function with results
// of its own type can answer with a stream, but its events pass through encoding/json, which takes
// about 10 ms per MB. So the form that receives bytes is used unless answers are streamed.
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

// document is undecoded JSON.
type document []byte

// UnmarshalJSON implements json.Unmarshaler.
func (d *document) UnmarshalJSON(b []byte) error {
	*d = bytes.Clone(b)
	return nil
}

// wholeAnswer is JSON that aws-lambda-go sends unchanged.
type wholeAnswer struct {
	bytes.Reader
	memory []byte
}

// Close is called after the answer was sent.
func (a *wholeAnswer) Close() error {
	giveBuffer(a.memory)
	a.memory = nil
	a.Reset(nil)
	return nil
}

// ContentType returns the content type for aws-lambda-go.
func (*wholeAnswer) ContentType() string { return "application/json" }

// MarshalJSON fails, so that aws-lambda-go reads the answer instead of encoding it.
func (*wholeAnswer) MarshalJSON() ([]byte, error) { return nil, errors.New("already encoded") }
