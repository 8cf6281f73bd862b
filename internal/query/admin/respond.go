package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/store/catalog"
)

// failure is an error with upstream's type and the HTTP status that goes with it.
type failure struct {
	kind string
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func badData(err error) error { return &failure{"bad_data", http.StatusBadRequest, err} }

// errDisabled is upstream's answer while the API is off.
var errDisabled = &failure{"unavailable", http.StatusServiceUnavailable, errors.New("admin APIs disabled")}

// failureOf returns the answer to an error.
func failureOf(err error) *failure {
	var (
		f     *failure
		limit interface{ QueryLimit() bool }
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &limit) && limit.QueryLimit():
		return &failure{"execution", http.StatusUnprocessableEntity, err}
	case errors.Is(err, catalog.ErrInvalid):
		return &failure{"bad_data", http.StatusBadRequest, err}
	case errors.Is(err, catalog.ErrFull):
		return &failure{"unavailable", http.StatusTooManyRequests, err}
	case errors.Is(err, catalog.ErrConflict):
		return &failure{"unavailable", http.StatusServiceUnavailable, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{"timeout", http.StatusServiceUnavailable, err}
	default:
		return &failure{"internal", http.StatusInternalServerError, err}
	}
}

// retryAfter is the header's value in seconds when a manifest is full: about the time from one
// compaction to the next.
const retryAfter = "60"

// response is upstream's envelope.
type response struct {
	Status    string `json:"status"`
	Data      any    `json:"data,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Error     string `json:"error,omitempty"`
}

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
			if f.code >= http.StatusInternalServerError && f != errDisabled {
				a.logger.Error("admin request failed", "path", r.URL.Path, "err", err)
			}
			if f.code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", retryAfter)
			}
			a.write(w, r, f.code, response{Status: "error", ErrorType: f.kind, Error: err.Error()})
		case data == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			a.write(w, r, http.StatusOK, response{Status: "success", Data: data})
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
			return nil, &failure{"bad_data", http.StatusRequestEntityTooLarge, fmt.Errorf("request body exceeds the limit of %d bytes", tooLarge.Limit)}
		}
		return nil, badData(fmt.Errorf("error parsing form values: %w", err))
	}
	return f(r)
}

func (a *api) write(w http.ResponseWriter, r *http.Request, code int, resp response) {
	body, err := json.Marshal(resp)
	if err != nil {
		a.logger.Error("encode response", "path", r.URL.Path, "err", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		a.logger.Debug("write response", "path", r.URL.Path, "err", err)
	}
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
