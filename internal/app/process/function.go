package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// Consumer is a stage that takes the messages of a queue. At most one stage of a function is one.
type Consumer interface {
	// Consume makes a batch durable. failed are the IDs of the messages to deliver again; err means
	// all of them.
	Consume(ctx context.Context, batch []lambda.Message) (failed []string, err error)
}

// Scheduled is a stage that works on a schedule.
type Scheduled interface {
	// Tick does the work that is due at the scheduled time.
	Tick(ctx context.Context, at time.Time) error
}

// Trailing is a stage that has work after requests. Only a function calls it; elsewhere a stage
// works while no request is there.
type Trailing interface {
	// After works for a moment after each request, before its answer ends.
	After(ctx context.Context)
}

// Serve runs the stages as Function does in an AWS Lambda function, and as Run does elsewhere.
// Their log goes to w.
func Serve(ctx context.Context, s Settings, l lambda.Settings, w io.Writer, builders ...Builder) error {
	logger, err := telemetry.NewLogger(w, s.Log)
	if err != nil {
		return err
	}
	if !lambda.Running() {
		return Run(ctx, s, logger, builders...)
	}
	s.Lambda = l
	return Function(ctx, s, logger, builders...)
}

// Function runs the stages as an AWS Lambda function until the runtime ends it. The handlers of all
// stages take the requests of an HTTP API and of a Function URL, a Consumer takes the messages of
// queues, and each Scheduled stage takes the schedules. The first request waits until all stages
// are built, so a builder does as little as it can.
func Function(ctx context.Context, s Settings, logger *slog.Logger, builders ...Builder) error {
	begin := time.Now()
	if err := errors.Join(s.Validate(), s.Lambda.Validate()); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	tuneGC(s)
	if heap := heapLimit(s.MemoryLimit, os.Getenv("GOMEMLIMIT"), lambda.MemoryBytes()); heap > 0 {
		debug.SetMemoryLimit(heap)
	}
	s.CheckStore = false // it would take some twenty requests of every cold start
	current := &currentRequest{}
	logger = slog.New(requestHandler{logger.Handler(), current})
	ready := make(chan struct{})
	close(ready)
	made, err := start(ctx, s, memoryLimit{bytes: lambda.MemoryBytes() / 10 * 9}, Parts{Logger: logger, Now: time.Now, Ready: ready}, false, builders)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	h, err := handlers(made, newFunctionMetrics(made.reg, lambda.MemoryBytes(), time.Since(begin)), current)
	if err != nil {
		return errors.Join(err, made.stages.end(ctx))
	}
	logger.Info("function started", "store", publicURL(s.Store), "version", telemetry.ReadBuild().Version, "seconds", time.Since(begin).Seconds())
	return lambda.Serve(ctx, h, s.Lambda, logger)
}

// heapLimit returns the limit of the Go heap, in bytes, in a function with memory bytes, or the
// operator's limit if one is set. The rest is for memory that Go does not count, such as the
// program itself.
func heapLimit(set int64, variable string, memory int64) int64 {
	if set > 0 || variable != "" {
		return set
	}
	return memory / 10 * 8
}

// handlers are what the stages do with Lambda's events.
func handlers(made *started, m *functionMetrics, current *currentRequest) (lambda.Handlers, error) {
	g := &gate{}
	g.open(made.handler, nil)
	h := lambda.Handlers{
		HTTP:   g,
		Before: func(ctx context.Context) { current.enter(ctx); m.begin() },
		After: func(ctx context.Context) {
			m.end(ctx, time.Now())
			for _, stage := range made.stages {
				if t, ok := stage.(Trailing); ok {
					t.After(ctx)
				}
			}
			made.self.MaybeWrite(ctx)
			current.leave()
		},
		Shutdown: func(ctx context.Context) error {
			// The stages end in the same order as in shutdown. The metrics are written first, in half
			// of the time at most, because a write stage of this process takes them.
			g.drain()
			flush, cancel := ctx, func() {}
			if end, ok := ctx.Deadline(); ok {
				flush, cancel = context.WithDeadline(ctx, end.Add(-time.Until(end)/2))
			}
			made.self.Flush(flush)
			cancel()
			return made.stages.end(ctx)
		},
	}
	var ticks []Scheduled
	for _, stage := range made.stages {
		if c, ok := stage.(Consumer); ok {
			if h.Messages != nil {
				return lambda.Handlers{}, errors.New("two stages take messages: one queue cannot tell them apart")
			}
			h.Messages = c.Consume
		}
		if t, ok := stage.(Scheduled); ok {
			ticks = append(ticks, t)
		}
	}
	if ticks != nil {
		h.Schedule = func(ctx context.Context, at time.Time) error {
			var errs []error
			for _, t := range ticks { // all stages work, also when one fails
				errs = append(errs, t.Tick(ctx, at))
			}
			return errors.Join(errs...)
		}
	}
	return h, nil
}
