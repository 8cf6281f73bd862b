package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/instrument"
)

// Parts is what a process hands to each of its stages.
type Parts struct {
	Store    objstore.Store     // instrumented
	Writes   *instrument.Writes // to Store by this process
	Registry *prometheus.Registry
	Memory   *memory.Budget // of the process; nil: it has no limit
	Flags    flags.Values   // of the process
	Logger   *slog.Logger
	Now      func() time.Time
	URL      string          // where this process answers on this machine, no trailing slash
	Token    string          // what this process sends when it asks itself there; "" where requests need no token
	Ready    <-chan struct{} // closed once the process answers requests

	// Handler answers as the HTTP server does, behind the same guards; nil in programs without one.
	Handler http.Handler
	HTTP    Timeouts
	Web     WebFile
}

// Route is one HTTP handler of a stage.
type Route struct {
	Pattern string // as http.ServeMux has it
	Name    string // the handler's name in metrics; "" if the handler instruments itself
	Access  auth.Access
	APIKey  bool // the token may come as Datadog's API key
	Handler http.Handler
}

// Stage is one component of a process. Its life is Routes, requests, Drain, last answers, Close.
type Stage interface {
	// Routes lists the handlers; patterns are unique in the process.
	Routes() []Route
	// Drain finishes the work that pending requests wait for and refuses new work. The process
	// accepts no new connections, but still answers requests.
	Drain(ctx context.Context) error
	// Close releases what the stage holds, after the last request was answered.
	Close() error
}

// Idle is a stage that does nothing itself. Builders return it when they need only the Parts, or
// when other code drives what they built.
type Idle struct{}

// Routes implements Stage.
func (Idle) Routes() []Route { return nil }

// Drain implements Stage.
func (Idle) Drain(context.Context) error { return nil }

// Close implements Stage.
func (Idle) Close() error { return nil }

// Builder makes a stage.
type Builder func(ctx context.Context, p Parts) (Stage, error)

// stages are in the order in which they were built; they end in the opposite order.
type stages []Stage

// build makes all stages or none.
func build(ctx context.Context, p Parts, builders []Builder) (stages, error) {
	var all stages
	for _, b := range builders {
		s, err := b(ctx, p)
		if err != nil {
			return nil, errors.Join(err, all.end(ctx))
		}
		all = append(all, s)
	}
	return all, nil
}

// end drains and closes stages that no request is in.
func (all stages) end(ctx context.Context) error {
	return errors.Join(all.drain(ctx), all.close())
}

func (all stages) drain(ctx context.Context) error {
	return all.each("drain", func(s Stage) error { return s.Drain(ctx) })
}

func (all stages) close() error { return all.each("close", Stage.Close) }

// each calls f with all stages, the last one first. The name of the call is for errors.
func (all stages) each(name string, f func(Stage) error) error {
	var errs []error
	for _, s := range slices.Backward(all) {
		if err := f(s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Work goes on beside requests until it is ended.
type Work struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when the work has ended
}

// Begin calls f. The name is for errors.
func Begin(name string, f func(context.Context)) *Work {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Work{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		f(ctx)
	}()
	return w
}

// End ends the context of f and waits until f returns, or ctx ends.
func (w *Work) End(ctx context.Context) error {
	w.cancel()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end %s: %w", w.name, ctx.Err())
	}
}

// background works until it is drained.
type background struct {
	Idle
	*Work
	last func(ctx context.Context) // is called once the work has ended; nil: nothing is
}

// InBackground returns a stage that calls f once the process is ready. The context of f ends when
// the stage is drained; Drain and Close wait until f returns. The name is for errors.
func InBackground(p Parts, name string, f func(context.Context)) Stage {
	return background{Work: Begin(name, func(ctx context.Context) {
		select {
		case <-p.Ready:
			f(ctx)
		case <-ctx.Done():
		}
	})}
}

// Drain implements Stage.
func (b background) Drain(ctx context.Context) error {
	if err := b.End(ctx); err != nil || b.last == nil {
		return err
	}
	b.last(ctx)
	return nil
}

// Close implements Stage.
func (b background) Close() error { return b.End(context.Background()) }

// Until returns ctx, which ends with another context, too. The caller calls stop.
func Until(ctx, end context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(end, cancel)
	if end.Err() != nil {
		cancel() // AfterFunc takes its time
	}
	return ctx, func() { unlink(); cancel() }
}

// Repeat calls f again and again, with pauses in between, until ctx ends.
func Repeat(ctx context.Context, pause time.Duration, f func()) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f()
			t.Reset(pause)
		case <-ctx.Done():
			return
		}
	}
}

// ExclusiveWork answers a request with data and the name of the result for the counter. An error is
// answered with status 400 if result names it, and otherwise with 503, as "failed". Its context
// ends when the client goes away.
type ExclusiveWork func(r *http.Request) (data any, result string, err error)

// Exclusive is a stage that does nothing but serve ExclusiveWork at a path, to operators.
type Exclusive struct {
	Idle
	path    string
	busy    string // the answer to others while ExclusiveWork runs
	work    ExclusiveWork
	results *prometheus.CounterVec // by the label result; a request that found ExclusiveWork running is "busy"
	turn    sync.Mutex             // held while ExclusiveWork runs
}

// NewExclusive returns a stage that answers GET requests at path.
func NewExclusive(path, busy string, results *prometheus.CounterVec, work ExclusiveWork) *Exclusive {
	return &Exclusive{path: path, busy: busy, work: work, results: results}
}

// Routes implements Stage.
func (s *Exclusive) Routes() []Route {
	return []Route{{Pattern: "GET " + s.path, Name: s.path, Access: auth.Operate, Handler: s}}
}

// Reply has the form of the Prometheus API's answers.
type Reply struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
	Data      any    `json:"data,omitempty"`
}

// Send answers a request with an HTTP status and the reply.
func (r Reply) Send(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(r)
}

// ServeHTTP does the work.
func (s *Exclusive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, result, body := s.answer(r)
	s.results.WithLabelValues(result).Inc()
	body.Send(w, status)
}

func (s *Exclusive) answer(r *http.Request) (status int, result string, body Reply) {
	if !s.turn.TryLock() {
		return http.StatusConflict, "busy", Reply{Status: "error", ErrorType: "unavailable", Error: s.busy}
	}
	defer s.turn.Unlock()
	data, result, err := s.work(r)
	switch {
	case err == nil:
		return http.StatusOK, result, Reply{Status: "success", Data: data}
	case result != "":
		return http.StatusBadRequest, result, Reply{Status: "error", ErrorType: "bad_data", Error: err.Error()}
	default:
		return http.StatusServiceUnavailable, "failed", Reply{Status: "error", ErrorType: "unavailable", Error: err.Error()}
	}
}
