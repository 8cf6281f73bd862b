package memstore

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Op is a kind of operation.
type Op string

// The operations of an objstore.Store.
const (
	Get    Op = "get"
	Put    Op = "put"
	List   Op = "list"
	Delete Op = "delete"
	Now    Op = "now"
)

// Call is an operation before its execution.
type Call struct {
	N              int // number of earlier calls of the store with valid keys
	Op             Op
	Key            string             // List: the prefix
	Offset, Length int64              // Get only
	Cond           objstore.Condition // Put only
	StartAfter     string             // List only
}

func (c Call) writes() bool { return c.Op == Put || c.Op == Delete }

// When is the point of an operation at which its fault takes effect.
type When int

const (
	// Before fails the operation before it has any effect.
	Before When = iota
	// After fails the operation after it took effect, so the caller cannot know the outcome. An
	// operation that fails itself, for example because of a condition, keeps its own error. A List
	// fails as with Midway.
	After
	// Midway fails a Get's body after half of its bytes, a List after half of its objects, and
	// writes as Before.
	Midway
)

// Fault is a fault to inject into an operation. The zero value is none.
type Fault struct {
	// Until delays the operation until the channel is closed or ctx ends.
	Until <-chan struct{}
	// Err fails the operation with an error that wraps it.
	Err  error
	When When
}

// StatusError is a failure that an HTTP store would report.
type StatusError struct {
	Code int // HTTP status
}

// Status returns a failure with an HTTP status. errors.Is matches 412 with
// objstore.ErrPrecondition, 404 with objstore.ErrNotFound and 416 with objstore.ErrRange.
func Status(code int) error { return &StatusError{Code: code} }

func (e *StatusError) Error() string {
	return fmt.Sprintf("injected fault: status %d %s", e.Code, http.StatusText(e.Code))
}

// HTTPStatusCode returns the status; errors of the AWS SDK have a method of this name.
func (e *StatusError) HTTPStatusCode() int { return e.Code }

// Unwrap returns the sentinel error of the status, if it has one.
func (e *StatusError) Unwrap() error {
	switch e.Code {
	case http.StatusPreconditionFailed:
		return objstore.ErrPrecondition
	case http.StatusNotFound:
		return objstore.ErrNotFound
	case http.StatusRequestedRangeNotSatisfiable:
		return objstore.ErrRange
	}
	return nil
}

// Script is a list of faults, each of which is injected once, into the first call that matches. Its
// Next is a Settings.Faults. The zero value is empty. Tests may add faults while the store is in
// use.
type Script struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	match func(Call) bool
	fault Fault
}

// Add appends a fault for the next call that match accepts; nil accepts all.
func (s *Script) Add(match func(Call) bool, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{match, f})
}

// Next removes the first fault that matches c from the script and returns it.
func (s *Script) Next(c Call) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.lines {
		if l.match == nil || l.match(c) {
			s.lines = append(s.lines[:i:i], s.lines[i+1:]...)
			return l.fault
		}
	}
	return Fault{}
}

// Left returns the number of faults that were not injected yet.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}

// On returns a function that matches the calls of an operation.
func On(op Op) func(Call) bool { return func(c Call) bool { return c.Op == op } }
