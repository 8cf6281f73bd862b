package ruler

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// failure is an error with the HTTP status of its answer.
type failure struct {
	code int
	error
}

func (f *failure) Unwrap() error { return f.error }

func bad(err error) error { return &failure{http.StatusBadRequest, err} }

// statusOf returns the status of the answer to an error.
func statusOf(err error) int {
	var f *failure
	switch {
	case errors.Is(err, memory.ErrMemory):
		return http.StatusServiceUnavailable
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, rulestore.ErrNoGroup), errors.Is(err, rulestore.ErrNoNamespace):
		return http.StatusNotFound
	case errors.Is(err, rulestore.ErrConflict), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// handler makes an HTTP handler of f. Data is answered as YAML, and a change by 202 with
// Prometheus' envelope, as by Mimir: it counts from the next evaluation on. Errors are plain text.
func (a *api) handler(f func(*http.Request) (data any, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := a.answer(w, r, f)
		if err == nil && data != nil {
			err = a.writeYAML(w, data)
		} else if err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			// Errors mean that the client closed the connection.
			_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": nil, "errorType": "", "error": ""})
		}
		if err == nil {
			return
		}
		if e, ok := errors.AsType[*rulestore.LimitError](err); ok {
			a.limited.WithLabelValues(e.Name).Inc()
		} else if _, ok := errors.AsType[*expression.Error](err); ok {
			a.limited.WithLabelValues(limitExpression).Inc()
		} else if _, ok := errors.AsType[*ruletemplate.Error](err); ok {
			a.limited.WithLabelValues(limitTemplate).Inc()
		}
		code := statusOf(err)
		if code >= http.StatusInternalServerError {
			a.logger.Error("a request for rules failed", "path", r.URL.Path, "err", err)
		}
		http.Error(w, err.Error(), code)
	})
}

// answer calls f with the tenant and the deadline in the request's context.
func (a *api) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) (any, error) {
	id, err := tenant.FromRequest(r)
	if err != nil {
		return nil, bad(err)
	}
	ctx, cancel := context.WithTimeout(tenant.With(r.Context(), id), max(a.settings.Timeout, time.Millisecond))
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, a.settings.MaxBytes)
	return f(r)
}

func (a *api) writeYAML(w http.ResponseWriter, data any) error {
	text, err := yaml.Marshal(data)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	if _, err := w.Write(text); err != nil {
		a.logger.Debug("write response", "err", err) // the client has gone
	}
	return nil
}
