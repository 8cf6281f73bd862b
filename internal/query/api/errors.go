package api

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

// failure is the answer to an error: upstream's error type and the HTTP status.
type failure struct {
	kind string
	code int
}

// failureOf returns the answer to a storage error that classify returned.
func failureOf(err error) failure {
	switch {
	case isLimit(err), isFailed(err):
		return failure{"execution", http.StatusUnprocessableEntity}
	case isA[promql.ErrQueryCanceled](err):
		return failure{"canceled", statusClientClosed}
	case isA[promql.ErrQueryTimeout](err):
		return failure{"timeout", http.StatusServiceUnavailable}
	default:
		return failure{"internal", http.StatusInternalServerError}
	}
}

// classify wraps a storage error in the promql error type by which upstream selects the status.
// Only the end of the request's own context is a timeout or a cancellation: an internal deadline of
// a store's client is a storage error.
func classify(ctx context.Context, err error) error {
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

func isLimit(err error) bool {
	limit, ok := errors.AsType[LimitError](err)
	return ok && limit.QueryLimit() || isA[promql.ErrTooManySamples](err)
}

// failedQuery is the error of a query that fails on its data, whenever it is sent.
type failedQuery interface {
	error
	QueryFailed() bool
}

func isFailed(err error) bool {
	failed, ok := errors.AsType[failedQuery](err)
	return ok && failed.QueryFailed()
}

// badQuery is the error of a query that cannot be understood.
type badQuery interface {
	error
	BadQuery() bool
}

func isBad(err error) bool {
	bad, ok := errors.AsType[badQuery](err)
	return ok && bad.BadQuery()
}

// overrideCode corrects the status of label requests: upstream answers all their storage errors as
// execution errors. N is upstream's unexported type of error numbers.
func overrideCode[N ~int](n N, err error) (code int, override bool) {
	if n != N(v1.ErrorExec) || !isClassified(err) {
		return 0, false
	}
	return failureOf(err).code, true
}
