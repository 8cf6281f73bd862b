package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// function handles events. It holds no state of an invocation, so it can handle several
// concurrently.
type function struct {
	h   Handlers
	set Settings
	log *slog.Logger
}

// handle handles one event. The answer is either JSON or a stream, which only a Function URL
// accepts.
func (f *function) handle(ctx context.Context, payload []byte) (whole []byte, stream *events.LambdaFunctionURLStreamingResponse, err error) {
	start := time.Now()
	e, err := parse(payload)
	if err := f.h.refuse(e, err); err != nil {
		return nil, nil, err
	}
	var id string // "" outside of Lambda
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		id = lc.AwsRequestID
	}
	ctx, cancel := f.bound(WithInvocation(ctx, Invocation{id, e.kind, start, e.request.Context.Authorizer.IAM.UserARN}), e.kind)
	if f.h.Before != nil {
		f.h.Before(ctx)
	}
	if e.kind == FunctionURL && f.set.Streaming {
		return nil, f.stream(ctx, cancel, &e), nil
	}
	defer cancel()
	defer f.after(ctx)
	switch e.kind {
	case SQS:
		whole, err = f.messages(ctx, e.messages)
	case Schedule:
		err = f.guarded(ctx, func() error { return f.h.Schedule(ctx, e.at) })
		whole = []byte("null")
	case Command:
		err = f.guarded(ctx, func() error {
			answer, err := f.h.Command(ctx, payload)
			if err == nil {
				whole, err = json.Marshal(answer)
			}
			return err
		})
	default:
		whole, err = f.answer(ctx, &e)
	}
	return whole, nil, err
}

// bound ends the work shortly before Lambda, or the HTTP API, stops waiting for it.
func (f *function) bound(ctx context.Context, e Event) (context.Context, context.CancelFunc) {
	now := time.Now()
	end, ok := ctx.Deadline()
	if e == HTTPAPI && (!ok || end.Sub(now) > f.set.GatewayTimeout) {
		end, ok = now.Add(f.set.GatewayTimeout), true
	}
	if !ok {
		return context.WithCancel(ctx)
	}
	margin := min(f.set.Margin, max(end.Sub(now), 0)/4)
	return context.WithDeadline(ctx, end.Add(-margin))
}

// errPanic reports that a handler panicked; the log has the stack.
var errPanic = errors.New("handler panicked")

// guarded calls do and turns a panic into an error, so that the process and its caches survive.
func (f *function) guarded(ctx context.Context, do func() error) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler: // the handler aborted deliberately
			err = http.ErrAbortHandler
		default:
			f.log.ErrorContext(ctx, "handler panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return do()
}

func (f *function) after(ctx context.Context) {
	if f.h.After != nil {
		// The only possible error is a panic, which guarded has logged.
		_ = f.guarded(ctx, func() error { f.h.After(ctx); return nil })
	}
}

func (f *function) messages(ctx context.Context, batch []Message) ([]byte, error) {
	var failed []string
	err := f.guarded(ctx, func() (err error) {
		failed, err = f.h.Messages(ctx, batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("handle %d messages: %w", len(batch), err)
	}
	// The failures are never null, which would mean that all messages failed.
	a := events.SQSEventResponse{BatchItemFailures: make([]events.SQSBatchItemFailure, 0, len(failed))}
	for _, id := range failed {
		a.BatchItemFailures = append(a.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
	}
	return json.Marshal(a)
}

// serve runs the HTTP handler with w.
func (f *function) serve(w http.ResponseWriter, r *http.Request) error {
	return f.guarded(r.Context(), func() error { f.h.HTTP.ServeHTTP(w, r); return nil })
}

// answer answers an HTTP request as a whole.
func (f *function) answer(ctx context.Context, e *event) ([]byte, error) {
	r, release := e.request.request(ctx, e.kind)
	defer release()
	w := &recorder{max: f.set.MaxAnswerBytes, body: takeBuffer()}
	defer func() { giveBuffer(w.body) }() // grown since
	// A handler that sends its answer in parts gives up when one is refused.
	if err := f.serve(w, r); err != nil && (!w.over || errors.Is(err, errPanic)) {
		w.restart()
		respond(w, http.StatusInternalServerError, "internal", err.Error())
	}
	whole, err := w.encode(f.set.MaxAnswerBytes)
	if errors.Is(err, errTooLarge) {
		f.log.WarnContext(ctx, "answer too large", "path", r.URL.Path, "limit", f.set.MaxAnswerBytes)
		w.restart()
		tooLarge(w, r.URL.Path, e.kind, f.set)
		whole, err = w.encode(f.set.MaxAnswerBytes)
	}
	return whole, err
}

// stream answers an HTTP request while its handler writes. It returns when status and headers are
// known. The handler has ended when the stream ends.
func (f *function) stream(ctx context.Context, cancel context.CancelFunc, e *event) *events.LambdaFunctionURLStreamingResponse {
	r, release := e.request.request(ctx, e.kind)
	out, in := io.Pipe()
	w := &streamer{pipe: in, max: f.set.MaxStreamBytes, begun: make(chan events.LambdaFunctionURLStreamingResponse, 1)}
	go func() {
		defer cancel()
		err := f.serve(w, r)
		release()
		if err != nil && !w.started && w.err == nil { // nothing was sent: the answer can be replaced
			w.restart()
			respond(w, http.StatusInternalServerError, "internal", err.Error())
			err = nil
		}
		f.after(ctx)
		if w.err != nil {
			f.log.WarnContext(ctx, "answer aborted", "path", r.URL.Path, "bytes", w.sent, "err", w.err)
		}
		w.end(err)
	}()
	stream := <-w.begun
	stream.Body = out
	return &stream
}
