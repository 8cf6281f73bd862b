package memstore

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/promlake/promlake/internal/objstore"
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

// Call is an operation that is about to happen.
type Call struct {
	N              int // counts all calls of the store with valid keys, from 0
	Op             Op
	Key            string             // List: the prefix
	Offset, Length int64              // Get only
	Cond           objstore.Condition // Put only
	StartAfter     string             // List only
}

func (c Call) writes() bool { return c.Op == Put || c.Op == Delete }

// When says at which point of an operation its fault strikes.
type When int

const (
	// Before fails the operation before it has any effect.
	Before When = iota
	// After fails the operation after it took effect: the caller cannot know. An operation that
	// fails by itself, by a condition say, keeps its own error. A List fails as in Midway.
	After
	// Midway fails a Get's body after half its bytes, a List after half its objects, and writes as
	// Before.
	Midway
)

// Fault is what befalls an operation. The zero value is nothing.
type Fault struct {
	// Until delays the operation until the channel is closed or the context ends.
	Until <-chan struct{}
	// Err fails the operation; the caller gets an error that wraps it.
	Err  error
	When When
}

// StatusError is a failure as an HTTP store would report it.
type StatusError struct {
	Code int // HTTP status
}

// Status returns the failure with an HTTP status; that of 412 is objstore.ErrPrecondition and of
// 404 objstore.ErrNotFound to errors.Is.
func Status(code int) error { return &StatusError{Code: code} }

func (e *StatusError) Error() string {
	return fmt.Sprintf("injected fault: status %d %s", e.Code, http.StatusText(e.Code))
}

// HTTPStatusCode returns the status, under the name that AWS SDK errors have for it.
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

// Script is a list of faults that each strike once, at the first call that matches. Its Next is a
// Settings.Faults. The zero value is empty; a test may add to it while the store is in use.
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

// Next takes the first fault that matches c out of the script.
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

// Left returns the number of faults that have not struck yet.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}

// On matches the calls of an operation.
func On(op Op) func(Call) bool { return func(c Call) bool { return c.Op == op } }
