package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/request"
)

// estimated is the answer of the routes that estimate queries.
type estimated struct {
	Estimate request.Estimate `json:"estimate"`
}

// estimating answers with what a query takes. The parameters are those of the route that runs it;
// those that concern only an answer are checked and have no effect, as upstream has it.
func (s *server) estimating(ranged bool) http.Handler {
	return s.withAsOf(s.respond.JSON(func(r *http.Request) (any, error) {
		q := request.Question{Text: r.FormValue("query")}
		if q.Text == "" {
			return nil, respond.BadRequest("parameter \"query\" is missing")
		}
		if v := r.FormValue("limit"); v != "" {
			if n, err := strconv.Atoi(v); err != nil || n < 0 {
				return nil, invalid("limit", errors.New("limit must be a non-negative number"))
			}
		}
		if err := s.times(r, &q, ranged); err != nil {
			return nil, err
		}
		r, cancel, err := s.bounded(r, r.Form)
		if err != nil {
			return nil, err
		}
		defer cancel()
		ctx := r.Context()
		if v := r.FormValue("timeout"); v != "" {
			timeout, err := duration(v)
			if err != nil {
				return nil, invalid("timeout", err)
			}
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		out, err := s.explains.Estimate(ctx, q)
		if bad := respond.Bad(err); bad != nil {
			return nil, invalid("query", bad)
		}
		return estimated{out}, respond.Classify(ctx, err)
	}))
}

// bounded returns a request with the limits of cost and the quote that its parameters ask for, as
// upstream's feature query-cost has them; max_dollars is Promlake's. Limits above those of the
// server are refused.
func (s *server) bounded(r *http.Request, form map[string][]string) (_ *http.Request, cancel context.CancelFunc, err error) {
	get := url.Values(form).Get
	asked, of := request.From(r.Context()), &s.settings.Cost
	whole := func(text string) (int64, error) {
		n, err := strconv.ParseUint(text, 10, 63)
		return int64(n), err
	}
	dollars := func(text string) (float64, error) {
		d, err := strconv.ParseFloat(text, 64)
		if err == nil && !(d >= 0 && d <= math.MaxFloat64) {
			err = fmt.Errorf("want a number of at least 0, got %s", text)
		}
		return d, err
	}
	var longest time.Duration
	var errs [4]error
	asked.Limits.Series, errs[0] = limit("max_series", get("max_series"), of.Series, whole)
	asked.Limits.Samples, errs[1] = limit("max_samples_read", get("max_samples_read"), of.Samples, whole)
	asked.Limits.Dollars, errs[2] = limit("max_dollars", get("max_dollars"), of.Dollars, dollars)
	longest, errs[3] = limit("max_query_duration", get("max_query_duration"), s.settings.QueryTimeout, duration)
	if err := cmp.Or(errs[:]...); err != nil {
		return r, nil, err
	}
	if v := get("cost"); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return r, nil, invalid("cost", errors.New("must be a boolean"))
		}
		if on {
			asked.Quote = &request.Quote{}
		}
	}
	if cancel = func() {}; asked.Quote == nil && asked.Limits == (request.CostLimits{}) && longest <= 0 {
		return r, cancel, nil
	}
	ctx := request.With(r.Context(), asked)
	if longest > 0 {
		ctx, cancel = context.WithTimeout(ctx, longest)
	}
	return r.WithContext(ctx), cancel, nil
}

// limit parses the limit of a parameter. 0 and "" are no limit.
func limit[N int64 | float64 | time.Duration](name, text string, ceiling N, parse func(string) (N, error)) (N, error) {
	if text == "" {
		return 0, nil
	}
	n, err := parse(text)
	switch {
	case err != nil:
		return 0, respond.BadRequest(fmt.Sprintf("error parsing %s: %v", name, err))
	case ceiling > 0 && n > ceiling:
		return 0, respond.BadRequest(fmt.Sprintf("requested %s of %v exceeds the server limit of %v", name, n, ceiling))
	}
	return n, nil
}

// refusing answers a query that was refused for its cost in place of next, one of upstream's
// handlers: before 3.16 upstream does not know this type of errors.
func (s *server) refusing(next http.Handler, w http.ResponseWriter, r *http.Request) {
	refused := &request.From(r.Context()).Origin.Refused
	next.ServeHTTP(&refusable{w, refused}, r)
	if err := refused.Load(); err != nil {
		for _, name := range []string{"Content-Encoding", "Content-Length"} {
			w.Header().Del(name)
		}
		s.respond.Error(w, r, respond.CostLimit, err)
	}
}

// refusable drops the answer to a refused query.
type refusable struct {
	http.ResponseWriter
	refused *atomic.Pointer[request.LimitError]
}

// WriteHeader implements http.ResponseWriter.
func (w *refusable) WriteHeader(code int) {
	if w.refused.Load() == nil {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (w *refusable) Write(p []byte) (int, error) {
	if w.refused.Load() != nil {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
