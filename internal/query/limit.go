package query

import (
	"fmt"
	"math"
)

// LimitError reports that a query went beyond a limit. It is the asker's mistake or the operator's choice, not a fault.
type LimitError struct {
	Limit  string // what is limited
	Value  int64  // the limit
	Needed int64  // what the query needed, at least; 0 = it was stopped before that was known
	Flag   string // the setting that raises it

	details string // of what it needed
	advice  string // what can be raised beside the flag
	cause   error  // by which upstream's API knows what happened; nil: it does not
}

// Error implements error.
func (e *LimitError) Error() string {
	text := fmt.Sprintf("query exceeds the limit of %d %s", e.Value, e.Limit)
	if e.Needed > 0 {
		text += fmt.Sprintf(", it needs %d", e.Needed)
	}
	if e.details != "" {
		text += " " + e.details
	}
	text += "; narrow the selector or the time range, or raise " + e.Flag
	if e.advice != "" {
		text += ", " + e.advice
	}
	if e.cause != nil {
		text = e.cause.Error() + ": " + text
	}
	return text
}

// Unwrap returns upstream's error for the case, if it has one.
func (e *LimitError) Unwrap() error { return e.cause }

// QueryLimit tells the HTTP API that this is a limit (422), and neither a failure nor something that upstream answers in its own way.
func (e *LimitError) QueryLimit() bool { return e.cause == nil }

// tooLong returns the error of a query that ran into the timeout, with upstream's for it.
func (s *Settings) tooLong(timeout error) error {
	return &LimitError{Limit: "seconds per query", Value: int64(math.Ceil(s.Timeout.Seconds())), Flag: "--query.timeout", cause: timeout}
}

// memoryFlag is the flag of the limit that is retried with less at once.
const memoryFlag = "--query.max-memory"

func (*Settings) tooMuchMemory(limit, needed int64) error {
	return &LimitError{Limit: "bytes of values and of what functions keep in memory per query", Value: limit, Needed: needed, Flag: memoryFlag}
}

func (s *Settings) tooManySamples(needed int64) error {
	return &LimitError{Limit: "samples per selector", Value: int64(s.MaxSamples), Needed: needed, Flag: "--query.max-samples"}
}

func (s *Settings) tooManySeries(needed int) error {
	return &LimitError{Limit: "series per selector", Value: int64(s.MaxSeries), Needed: int64(needed), Flag: "--query.max-series"}
}

func (s *Settings) tooManySegments(needed int) error {
	return &LimitError{Limit: "segments per selector", Value: int64(s.MaxSegments), Needed: int64(needed), Flag: "--query.max-segments"}
}
