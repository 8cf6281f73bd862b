package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
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

// Commanded is a stage that works when an operator invokes its function. At most one stage of a
// function is one.
type Commanded interface {
	// Command does what an event of the kind lambda.Command orders.
	Command(ctx context.Context, event []byte) (answer any, err error)
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
		HTTP:   identified(g),
		Before: func(ctx context.Context) { current.enter(ctx); m.begin() },
		After: func(ctx context.Context) {
			m.end(ctx, time.Now())
			for _, stage := range made.stages {
				if t, ok := stage.(Trailing); ok {
					t.After(ctx)
				}
			}
			made.self.MaybeWrite(ctx)
			current.id.Store(nil)
		},
		Shutdown: func(ctx context.Context) error {
			// The stages end in the same order as in shutdown. The metrics are written first, in
			// half of the time at most, because a write stage of this process takes them.
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
		if c, ok := stage.(Commanded); ok {
			h.Command = c.Command
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

// identified passes the identity of an event to the guards of the routes. Only a function has such
// events: a server takes no identity from anywhere.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i, ok := lambda.Current(r.Context()); ok {
			r = r.WithContext(auth.WithPrincipal(r.Context(), i.Principal))
		}
		next.ServeHTTP(w, r)
	})
}

// functionMetrics measure what AWS bills for a function:
//
//	promlake_function_invocations_total{event}    invocations, by lambda.Event
//	promlake_function_duration_seconds{event}     histogram, from event's arrival to end of work
//	promlake_function_billed_gb_seconds_total     duration × memory, starts included
//	promlake_function_cold_starts_total           1 from the first invocation on; its sum over instances
//	                                              is the number of starts
type functionMetrics struct {
	invocations *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	billed      prometheus.Counter
	cold        prometheus.Counter

	gb    float64       // memory of the function
	start time.Duration // how long the start took, which is billed with the first invocation
	first sync.Once
}

func newFunctionMetrics(reg prometheus.Registerer, memory int64, start time.Duration) *functionMetrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_function_"}
	return &functionMetrics{
		invocations: f.Counters("invocations_total", "Invocations of this function's environment, by kind of event.", "event"),
		duration: f.Histograms("duration_seconds", "Seconds from an event's arrival until its work was done, by kind of event.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}, "event"),
		billed: f.Counter("billed_gb_seconds_total", "Seconds of work, each invocation's rounded up to a millisecond, times the function's memory in GB (2^30 bytes)."),
		cold:   f.Counter("cold_starts_total", "Environments of this function that were started for an invocation."),
		gb:     float64(memory) / (1 << 30),
		start:  start,
	}
}

// begin counts the start of the environment with its first invocation.
func (m *functionMetrics) begin() {
	m.first.Do(func() {
		m.cold.Inc()
		m.bill(m.start)
	})
}

// end counts an invocation.
func (m *functionMetrics) end(ctx context.Context, now time.Time) {
	i, ok := lambda.Current(ctx)
	if !ok {
		return
	}
	took := now.Sub(i.Start)
	m.invocations.WithLabelValues(string(i.Event)).Inc()
	m.duration.WithLabelValues(string(i.Event)).Observe(took.Seconds())
	m.bill(took)
}

// bill rounds up to a millisecond, as AWS does (https://aws.amazon.com/lambda/pricing).
func (m *functionMetrics) bill(d time.Duration) {
	m.billed.Add(math.Ceil(d.Seconds()*1000) / 1000 * m.gb)
}

// requestKey is the attribute by which CloudWatch and Lambda's own JSON lines name an invocation.
const requestKey = "requestId"

// currentRequest is the ID of the current invocation, if there can be only one at a time. Lines
// that are logged without the invocation's context get this ID too.
type currentRequest struct{ id atomic.Pointer[string] }

func (c *currentRequest) enter(ctx context.Context) {
	if i, ok := lambda.Current(ctx); ok && lambda.Concurrency() == 1 {
		c.id.Store(&i.ID)
	}
}

// requestHandler adds the invocation's id to each line.
type requestHandler struct {
	slog.Handler
	current *currentRequest
}

// Handle implements slog.Handler.
func (h requestHandler) Handle(ctx context.Context, r slog.Record) error {
	id := ""
	if i, ok := lambda.Current(ctx); ok {
		id = i.ID
	} else if p := h.current.id.Load(); p != nil {
		id = *p
	}
	if id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String(requestKey, id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h requestHandler) WithAttrs(as []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(as), h.current}
}

// WithGroup implements slog.Handler.
func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name), h.current}
}
