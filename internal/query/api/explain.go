package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/prom/timeparam"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/request"
)

// Explainer is a Backend that can explain how it evaluates a query.
type Explainer interface {
	// Explain returns the plan of a query, to be encoded as JSON. Errors are those of a Backend,
	// and errors with a method BadQuery, which are answered with 400.
	Explain(ctx context.Context, q request.Question) (any, error)
	// Estimate returns what a query takes, without running it. Errors are those of Explain.
	Estimate(ctx context.Context, q request.Question) (request.Estimate, error)
	// Slices returns at most n statements, to be encoded as JSON, whose rows are those of a range
	// query, of the samples of a selector if its step is 0, or of a statement of SQL. Errors are those
	// of Explain, and of SQLer.SQL.
	Slices(ctx context.Context, q request.Question, n int) (any, error)
}

// explain answers /api/v1/explain. Its parameters are query, and time as for /query, or start, end
// and step as for /query_range; analyze, and statements=false.
func (s *server) explain(r *http.Request) (any, error) {
	q, err := s.explainQuery(r)
	if err != nil {
		return nil, err
	}
	out, err := s.explains.Explain(r.Context(), q)
	if bad := respond.Bad(err); bad != nil {
		return nil, invalid("query", bad)
	}
	return out, err
}

// slices answers /api/v1/slices. Its parameters are query, start, end, and step or none, or sql and
// params; and slices, the largest number of them.
func (s *server) slices(r *http.Request) (any, error) {
	q, n := request.Question{Text: r.FormValue("query")}, divide.MaxSlices
	if sql := r.FormValue("sql"); sql != "" {
		q.Statement = &request.Statement{Text: sql, Params: json.RawMessage(r.FormValue("params")), Expressions: s.settings.Expressions}
		if err := s.settings.Expressions.Check(sql); err != nil {
			return nil, invalid("sql", err)
		}
	} else if q.Text == "" {
		return nil, respond.BadRequest("parameter \"query\" is missing")
	}
	if v := r.FormValue("slices"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1 || n > divide.MaxSlices {
			return nil, invalid("slices", fmt.Errorf("want a number from 1 to %d, got %q", divide.MaxSlices, v))
		}
	}
	parse := steps
	if r.FormValue("step") == "" {
		parse = span
	}
	if q.Statement == nil {
		if err := parse(r, &q, s.now()); err != nil {
			return nil, err
		}
	}
	out, err := s.explains.Slices(r.Context(), q, n)
	if bad := respond.Bad(err); bad != nil {
		return nil, invalid("query", bad)
	}
	return out, err
}

func (s *server) explainQuery(r *http.Request) (q request.Question, err error) {
	q.Text = r.FormValue("query")
	if q.Text == "" {
		return q, respond.BadRequest("parameter \"query\" is missing")
	}
	if v := r.FormValue("analyze"); v != "" {
		if q.Analyze, err = strconv.ParseBool(v); err != nil {
			return q, invalid("analyze", err)
		}
	}
	if v := r.FormValue("statements"); v != "" {
		with, err := strconv.ParseBool(v)
		if err != nil {
			return q, invalid("statements", err)
		}
		if q.WithoutStatements = !with; !with && q.Analyze {
			return q, respond.BadRequest(`invalid parameter "statements": analyze=true needs the statements; leave one of the two out`)
		}
	}
	return q, s.times(r, &q, r.FormValue("start") != "" || r.FormValue("step") != "")
}

// times reads the times of a query, and its lookback.
func (s *server) times(r *http.Request, q *request.Question, ranged bool) (err error) {
	if v := r.FormValue("lookback_delta"); v != "" {
		if q.Lookback, err = duration(v); err != nil {
			return invalid("lookback_delta", err)
		}
	}
	if ranged {
		return steps(r, q, s.now())
	}
	q.End, err = moment(r, "time", s.now())
	q.Start = q.End
	return err
}

// steps reads the parameters of a range query.
func steps(r *http.Request, q *request.Question, now time.Time) (err error) {
	if q.Step, err = duration(r.FormValue("step")); err != nil {
		return invalid("step", err)
	}
	if err = span(r, q, now); err != nil {
		return err
	}
	if q.Step <= 0 {
		return respond.BadRequest("invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer")
	}
	return nil
}

// span reads the parameters start and end.
func span(r *http.Request, q *request.Question, now time.Time) (err error) {
	if q.Start, err = moment(r, "start", time.Time{}); err != nil {
		return err
	}
	if q.End, err = moment(r, "end", now); err != nil {
		return err
	}
	switch {
	case q.Start.IsZero():
		return respond.BadRequest("parameter \"start\" is missing")
	case q.End.Before(q.Start):
		return respond.BadRequest("invalid parameter \"end\": end timestamp must not be before start time")
	}
	return nil
}

// moment parses a time parameter; absent is its default.
func moment(r *http.Request, name string, absent time.Time) (time.Time, error) {
	v := r.FormValue(name)
	if v == "" {
		return absent, nil
	}
	t, err := timeparam.Parse(v)
	if err != nil {
		return t, invalid(name, err)
	}
	return t, nil
}

// duration parses seconds, or a duration in PromQL's syntax.
func duration(v string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		ns := s * float64(time.Second)
		if !(ns > -1<<63 && ns < 1<<63) {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", v)
		}
		return time.Duration(ns), nil
	}
	d, err := model.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", v)
	}
	return time.Duration(d), nil
}

func invalid(name string, err error) error {
	return respond.BadRequest(fmt.Sprintf("invalid parameter %q: %v", name, err))
}
