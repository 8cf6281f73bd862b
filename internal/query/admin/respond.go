package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/store/catalog"
)

// failure is an error with the answer to it.
type failure struct {
	error
	answer respond.Failure
}

func (f *failure) Unwrap() error { return f.error }

func badData(err error) error { return &failure{err, respond.BadData} }

// errDisabled is upstream's answer while the API is off.
var errDisabled = &failure{errors.New("admin APIs disabled"), respond.Failure{Kind: "unavailable", Code: http.StatusServiceUnavailable}}

// failureOf returns the answer to an error.
func failureOf(err error) respond.Failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.answer
	case errors.Is(err, catalog.ErrInvalid):
		return respond.BadData
	case errors.Is(err, catalog.ErrFull):
		return respond.Failure{Kind: "unavailable", Code: http.StatusTooManyRequests}
	case errors.Is(err, catalog.ErrConflict):
		return respond.Failure{Kind: "unavailable", Code: http.StatusServiceUnavailable}
	case errors.Is(err, context.DeadlineExceeded):
		return respond.Failure{Kind: "timeout", Code: http.StatusServiceUnavailable}
	default:
		return respond.FailureOf(err)
	}
}

// retryAfter is the header's value in seconds when a manifest is full: about the time from one
// compaction to the next.
const retryAfter = "60"

// handler makes an HTTP handler of f, which answers with data, or with none (204).
func (a *api) handler(f func(*http.Request) (data any, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost, http.MethodPut:
		case http.MethodOptions:
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			w.Header().Set("Allow", strings.Join([]string{http.MethodOptions, http.MethodPost, http.MethodPut}, ", "))
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		data, err := a.answer(w, r, f)
		switch {
		case err != nil:
			f := failureOf(err)
			var (
				request *requestLimit
				match   *expression.Error
				full    *catalog.LimitError
			)
			switch {
			case errors.As(err, &request):
				a.limited.WithLabelValues(request.name).Inc()
			case errors.As(err, &match):
				a.limited.WithLabelValues(limitMatch).Inc()
			case errors.As(err, &full):
				a.limited.WithLabelValues(full.Limit).Inc()
			}
			if f.Code >= http.StatusInternalServerError && err != error(errDisabled) {
				a.logger.Error("admin request failed", "path", r.URL.Path, "err", err)
			}
			if f.Code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", retryAfter)
			}
			a.respond.Error(w, r, f, err)
		case data == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			a.respond.Data(w, r, data)
		}
	})
}

// answer reads the form and calls f with the tenant and the deadline in the request's context.
func (a *api) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) (any, error) {
	if !a.settings.Enabled {
		return nil, errDisabled
	}
	id, err := tenant.FromRequest(r)
	if err != nil {
		return nil, badData(err)
	}
	ctx, cancel := context.WithTimeout(tenant.With(r.Context(), id), a.settings.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, a.settings.MaxBodyBytes)
	if err := r.ParseForm(); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &failure{fmt.Errorf("request body exceeds the limit of %d bytes", tooLarge.Limit), respond.Failure{Kind: respond.BadData.Kind, Code: http.StatusRequestEntityTooLarge}}
		}
		return nil, badData(fmt.Errorf("error parsing form values: %w", err))
	}
	return f(r)
}

// Limits of a request, by their names in metrics. Those of a manifest are named by
// catalog.LimitError.
const (
	limitSelectors = "selectors"
	limitMatch     = "expression" // expression.Limits
)

// requestLimit is a request that exceeds a limit of its own.
type requestLimit struct {
	name     string
	what     string // is limited
	got, max int64
	flag     string // changes the limit
}

func (e *requestLimit) Error() string {
	return fmt.Sprintf("%d %s, the limit is %d (%s): send several requests", e.got, e.what, e.max, e.flag)
}
