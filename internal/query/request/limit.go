package request

import (
	"fmt"
	"math"
	"time"

	"github.com/promlake/promlake/internal/base/settings"
)

// LimitError reports that a query exceeds a limit. The query is to be changed or the limit raised:
// it is not a fault of the server.
type LimitError struct {
	Limit  string // what is limited
	Value  int64  // the limit
	Needed int64  // what the query needs, at least; 0 = it ended before that was known
	Flag   string // the setting that raises it

	Details string // of Needed
	Advice  string // what else can be raised
	Cause   error  // by which upstream's API classifies the error; nil: it does not know it
	Cost    bool   // it is a limit of the cost, which upstream knows from 3.16 on

	text string // in place of the one that Error makes; "": there is none
}

// Error implements error.
func (e *LimitError) Error() string {
	if e.text != "" {
		return settings.ForOperator(e.text)
	}
	text := fmt.Sprintf("query exceeds the limit of %d %s", e.Value, e.Limit)
	if e.Needed > 0 {
		text += fmt.Sprintf(", it needs %d", e.Needed)
	}
	if e.Details != "" {
		text += " " + e.Details
	}
	text += "; narrow the selector or the time range, or raise " + e.Flag
	if e.Advice != "" {
		text += ", " + e.Advice
	}
	if e.Cause != nil {
		text = e.Cause.Error() + ": " + text
	}
	return settings.ForOperator(text)
}

// Unwrap returns upstream's error for the case, if it has one.
func (e *LimitError) Unwrap() error { return e.Cause }

// QueryLimit marks an error that the HTTP API answers with 422. An error with a cause is answered
// as its cause is.
func (e *LimitError) QueryLimit() bool { return e.Cause == nil || e.Cost }

// CostLimit marks an error that the HTTP API answers with the error type cost_limit.
func (e *LimitError) CostLimit() bool { return e.Cost }

// MemoryFlag is the flag of the limit after which a query is evaluated again in smaller parts.
const MemoryFlag = "--query.max-memory"

// TooLong returns the error of a query that ran into its timeout, with upstream's error for that.
func TooLong(timeout time.Duration, cause error) error {
	return &LimitError{Limit: "seconds per query", Value: int64(math.Ceil(timeout.Seconds())), Flag: "--query.timeout", Cause: cause}
}

// TooMuchMemory returns the error of a query whose values need more than limit bytes.
func TooMuchMemory(limit, needed int64) error {
	return &LimitError{Limit: "bytes of values and of what functions keep in memory per query", Value: limit, Needed: needed, Flag: MemoryFlag}
}

// SpentAll returns the error of a query of a tenant or a token whose queries have taken dollars in
// a span of time, day or month, and may take limit, which flag sets for all tenants.
func SpentAll(of, span, flag string, limit, dollars float64) error {
	return &LimitError{Flag: flag, Cost: true, text: fmt.Sprintf(
		"the queries of %s have taken $%.6f in this %s (UTC), and the limit is $%.6f; it is %s, or max_query_dollars_per_%s of the tenant or the token", of, dollars, span, limit, flag, span)}
}

// TooManyTenants returns the error of a request for what is counted of n tenants, of which one
// request may ask for limit.
func TooManyTenants(limit, n int) error {
	return &LimitError{text: fmt.Sprintf("the store has %d tenants, and one request may ask for what is counted of %d", n, limit)}
}

// TooManySamples returns the error of a selector that has more than limit samples.
func TooManySamples(limit int, needed int64) error {
	return &LimitError{Limit: "samples per selector", Value: int64(limit), Needed: needed, Flag: "--query.max-samples"}
}

// TooManySeries returns the error of a selector that matches more than limit series.
func TooManySeries(limit, needed int) error {
	return &LimitError{Limit: "series per selector", Value: int64(limit), Needed: int64(needed), Flag: "--query.max-series"}
}

// TooManySegments returns the error of a selector that reads more than limit segments and blocks.
func TooManySegments(limit, needed int) error {
	return &LimitError{Limit: "segments per selector", Value: int64(limit), Needed: int64(needed), Flag: "--query.max-segments"}
}
