package respond

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/promql"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// statusClientClosed is upstream's status for a request whose client closed the connection (as
// nginx has it).
const statusClientClosed = 499

// Failure is the answer to an error: upstream's error type and the HTTP status.
type Failure struct {
	Kind string
	Code int
}

// CostLimit is the answer to a query whose estimate exceeds a limit, as Prometheus 3.16 has it.
var CostLimit = Failure{"cost_limit", http.StatusUnprocessableEntity}

// FailureOf returns the answer to a storage error that Classify returned.
func FailureOf(err error) Failure {
	switch {
	case isCost(err):
		return CostLimit
	case isLimit(err), isFailed(err):
		return Failure{"execution", http.StatusUnprocessableEntity}
	case isA[promql.ErrQueryCanceled](err):
		return Failure{"canceled", statusClientClosed}
	case isA[promql.ErrQueryTimeout](err):
		return Failure{"timeout", http.StatusServiceUnavailable}
	default:
		return Failure{"internal", http.StatusInternalServerError}
	}
}

// Classify wraps a storage error in the promql error type by which upstream selects the status.
// Only the end of the request's own context is a timeout or a cancellation: an internal deadline of
// a store's client is a storage error.
func Classify(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && isLimit(cause) {
		return cause // it ended the request
	}
	switch {
	case err == nil, isLimit(err), isFailed(err), isClassified(err):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", promql.ErrQueryTimeout("storage access"), err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", promql.ErrQueryCanceled("storage access"), err)
	default:
		return promql.ErrStorage{Err: err}
	}
}

func isClassified(err error) bool {
	return isA[promql.ErrQueryCanceled](err) || isA[promql.ErrQueryTimeout](err) || isA[promql.ErrStorage](err)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// LimitError is the error of a query that exceeded a limit. The API answers it with 422, because
// the same query will fail again.
type LimitError interface {
	error
	// QueryLimit reports whether a limit was exceeded.
	QueryLimit() bool
}

// Errors are of a kind if a method of theirs says so.
type (
	costError interface { // the estimate of a query exceeds a limit
		error
		CostLimit() bool
	}
	failedError interface { // a query fails on its data, whenever it is sent
		error
		QueryFailed() bool
	}
	badError interface { // a query cannot be understood
		error
		BadQuery() bool
	}
)

// found returns the error in err that is of a kind, nil if there is none.
func found[E error](err error, is func(E) bool) error {
	if e, ok := errors.AsType[E](err); ok && is(e) {
		return e
	}
	return nil
}

func isCost(err error) bool   { return found(err, costError.CostLimit) != nil }
func isFailed(err error) bool { return found(err, failedError.QueryFailed) != nil }
func isLimit(err error) bool {
	return found(err, LimitError.QueryLimit) != nil || isA[promql.ErrTooManySamples](err)
}

// Bad returns the error in err of a query that cannot be understood, nil if there is none.
func Bad(err error) error { return found(err, badError.BadQuery) }

// OverrideCode corrects the status of label requests: upstream answers all their storage errors as
// execution errors. N is upstream's unexported type of error numbers.
func OverrideCode[N ~int](n N, err error) (code int, override bool) {
	if n != N(v1.ErrorExec) || !isClassified(err) {
		return 0, false
	}
	return FailureOf(err).Code, true
}
