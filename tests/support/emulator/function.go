package emulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Limits of AWS Lambda ("Lambda quotas" in its developer guide).
const (
	MaxPayload = 6<<20 + 100 // bytes of an event, and of an answer in one piece
	MaxStream  = 200 << 20   // bytes of a streamed answer
)

// Settings describe a function.
type Settings struct {
	Path string   // the bootstrap
	Args []string // its arguments; Lambda gives none
	Env  []string // NAME=value, added to the variables that Lambda sets; no other is inherited
	Name string   // default "promlake-test"

	MemoryMB     int           // default 512; passed to the process, not enforced
	Timeout      time.Duration // default 30 s; an invocation that takes longer ends in SIGKILL
	Grace        time.Duration // from SIGTERM to SIGKILL, default 500 ms as on Lambda
	Environments int           // processes at once, default 1; further invocations wait
	// invocations at once in one process (AWS_LAMBDA_MAX_CONCURRENCY), default 1
	Concurrency int

	Log  io.Writer // receives the processes' output; default: none
	PIDs string    // folder with a file <pid>.pid for each living process; default: none
}

// FunctionError is an error that the function reported, or that Lambda reports about it.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

// Error implements error.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("function error %s: %s", e.Type, e.Message)
}

// Types of the FunctionErrors that Lambda itself reports.
const (
	ErrorExit     = "Runtime.ExitError"             // the process ended or was killed
	ErrorTimeout  = "Sandbox.Timedout"              // the invocation took longer than Timeout
	ErrorTooLarge = "Function.ResponseSizeTooLarge" // the answer is over MaxPayload
)

// ErrRequestTooLarge reports an event over MaxPayload; the function does not receive it.
var ErrRequestTooLarge = errors.New("event is larger than AWS Lambda accepts")

// ErrStopped reports a function that was stopped.
var ErrStopped = errors.New("function is stopped")

// ColdStart holds the durations of one cold start.
type ColdStart struct {
	Ready  time.Duration // from the process' start to its first request for an event
	Answer time.Duration // from the process' start to the end of its first answer; 0 without one
}

// Function runs a bootstrap as AWS Lambda does. Its methods may be called concurrently.
type Function struct {
	set Settings

	mu      sync.Mutex
	wake    chan struct{} // closed and replaced when a slot may be free
	envs    []*environment
	started int // number of environments so far
	colds   []*ColdStart
	stopped bool
}

// New returns a function. No process runs before the first invocation.
func New(s Settings) *Function {
	s.Name, s.MemoryMB = cmp.Or(s.Name, "promlake-test"), cmp.Or(s.MemoryMB, 512)
	s.Timeout, s.Grace = cmp.Or(s.Timeout, 30*time.Second), cmp.Or(s.Grace, 500*time.Millisecond)
	s.Environments, s.Concurrency = max(s.Environments, 1), max(s.Concurrency, 1)
	s.Log = cmp.Or(s.Log, io.Discard)
	return &Function{set: s, wake: make(chan struct{})}
}

// Invoke delivers an event to an environment and returns the whole answer. Without a free
// environment it starts one, or waits if Settings.Environments run. Errors of the function are
// *FunctionError.
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	s, err := f.InvokeStream(ctx, payload)
	if err != nil {
		return nil, err
	}
	defer s.Body.Close()
	if s.Prelude != nil {
		return nil, &FunctionError{"Runtime.InvalidResponse", "the answer is a stream, but this caller accepts only JSON in one piece"}
	}
	return io.ReadAll(s.Body)
}

// Stream is an answer. Its body ends with a *FunctionError if the function failed while it wrote.
type Stream struct {
	Prelude *Prelude // status and headers of a streamed HTTP answer; nil for other answers
	Body    io.ReadCloser
}

// Prelude is the status and the headers of a streamed HTTP answer.
type Prelude struct {
	StatusCode int               `json:"statusCode"`
	Headers    map[string]string `json:"headers,omitempty"`
	Cookies    []string          `json:"cookies,omitempty"`
}

// InvokeStream is Invoke for callers that read the answer while the function writes it.
func (f *Function) InvokeStream(ctx context.Context, payload []byte) (*Stream, error) {
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrRequestTooLarge, len(payload), MaxPayload)
	}
	if !json.Valid(payload) {
		return nil, errors.New("event is not JSON")
	}
	e, err := f.claim(ctx)
	if err != nil {
		return nil, err
	}
	return e.invoke(ctx, payload)
}

// claim reserves a slot in an environment; invoke releases it.
func (f *Function) claim(ctx context.Context) (*environment, error) {
	for {
		f.mu.Lock()
		if f.stopped {
			f.mu.Unlock()
			return nil, ErrStopped
		}
		for _, e := range f.envs {
			if e.busy < f.set.Concurrency {
				e.busy++
				f.mu.Unlock()
				return e, nil
			}
		}
		if len(f.envs) < f.set.Environments {
			e, err := f.grow()
			f.mu.Unlock()
			return e, err
		}
		wake := f.wake
		f.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a free environment: %w", ctx.Err())
		}
	}
}

// grow starts an environment with one claimed slot. The caller holds f.mu.
func (f *Function) grow() (*environment, error) {
	cold := &ColdStart{}
	e, err := startEnvironment(f, f.started, cold)
	if err != nil {
		return nil, err
	}
	f.started++
	f.colds = append(f.colds, cold)
	e.busy = 1
	f.envs = append(f.envs, e)
	return e, nil
}

// free releases a slot.
func (f *Function) free(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.busy--
	f.signal()
}

// forget removes an environment whose process has ended.
func (f *Function) forget(e *environment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.envs = slices.DeleteFunc(f.envs, func(other *environment) bool { return other == e })
	f.signal()
}

// signal wakes the callers that wait for a slot. The caller holds f.mu.
func (f *Function) signal() {
	close(f.wake)
	f.wake = make(chan struct{})
}

// Kill ends all processes with SIGKILL and returns after their end. Their callers get a
// *FunctionError of type ErrorExit. The next invocation starts a new process.
func (f *Function) Kill() {
	for _, e := range f.live() {
		e.kill()
		<-e.gone
	}
}

// Stop ends all processes as Lambda ends idle environments: SIGTERM, and SIGKILL after
// Settings.Grace. It returns an error if a process that got SIGTERM did not end with status 0
// within that time. Later invocations fail with ErrStopped.
func (f *Function) Stop() error {
	f.mu.Lock()
	f.stopped = true
	f.signal()
	f.mu.Unlock()
	var errs []error
	for _, e := range f.live() {
		errs = append(errs, e.terminate())
	}
	return errors.Join(errs...)
}

func (f *Function) live() []*environment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.envs)
}

// Processes returns the process ids of the living environments.
func (f *Function) Processes() []int {
	var ids []int
	for _, e := range f.live() {
		ids = append(ids, e.cmd.Process.Pid)
	}
	return ids
}

// ColdStarts returns the cold starts of all environments so far, in order.
func (f *Function) ColdStarts() []ColdStart {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []ColdStart
	for _, c := range f.colds {
		all = append(all, *c)
	}
	return all
}
