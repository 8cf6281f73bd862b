package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/prometheus/promql"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// statusClientClosed is the status that upstream gives a request whose client went away (nginx's).
const statusClientClosed = 499

// failure is how an error is answered: upstream's error type and the HTTP status.
type failure struct {
	kind string
	code int
}

// failureOf returns how a storage error is answered. The error has gone through classify.
func failureOf(err error) failure {
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
	)
	switch {
	case isLimit(err):
		return failure{"execution", http.StatusUnprocessableEntity}
	case errors.As(err, &canceled):
		return failure{"canceled", statusClientClosed}
	case errors.As(err, &timeout):
		return failure{"timeout", http.StatusServiceUnavailable}
	default:
		return failure{"internal", http.StatusInternalServerError}
	}
}

// classify gives an error from the storage the promql type by which upstream answers it. Only the
// request's own context makes a timeout or a cancellation: a store client's internal deadline is a
// failure of the store.
func classify(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && isLimit(cause) {
		return cause // which ended the request
	}
	switch {
	case err == nil, isLimit(err), isClassified(err):
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
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		storage  promql.ErrStorage
	)
	return errors.As(err, &canceled) || errors.As(err, &timeout) || errors.As(err, &storage)
}

func isLimit(err error) bool {
	var (
		limit   LimitError
		samples promql.ErrTooManySamples
	)
	return errors.As(err, &limit) && limit.QueryLimit() || errors.As(err, &samples)
}

// overrideCode corrects the status where upstream calls every storage error of a label request an
// execution error. N is upstream's unexported type of error numbers.
func overrideCode[N ~int](n N, err error) (code int, override bool) {
	if n != N(v1.ErrorExec) || !isClassified(err) {
		return 0, false
	}
	return failureOf(err).code, true
}
