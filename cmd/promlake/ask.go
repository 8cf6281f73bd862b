package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/base/ask"
)

// question is an instant query (step 0, at end) or a range query.
type question struct {
	expr       string
	start, end time.Time
	step       time.Duration
}

// maxDefaultSteps is how many steps a range query has whose step is not given.
const maxDefaultSteps = 250

func newQuestion(expr, at, start, end string, step time.Duration, now time.Time) (question, error) {
	if start == "" {
		if end != "" || step != 0 {
			return question{}, errors.New("--end and --step belong to a range query: give --start too")
		}
		t, err := parseTime("time", at, now)
		return question{expr: expr, end: t}, err
	}
	if at != "" {
		return question{}, errors.New("--time belongs to an instant query, --start to a range query: give one of them")
	}
	from, to, err := parseRange(start, end, now)
	if err != nil {
		return question{}, err
	}
	if step == 0 {
		step = max(time.Second, (to.Sub(from) / maxDefaultSteps).Truncate(time.Second))
	}
	if step < time.Millisecond || to.Before(from) {
		return question{}, fmt.Errorf("range from %s to %s by %s: want an end after the start and a step of at least 1ms", from, to, step)
	}
	return question{expr: expr, start: from, end: to, step: step}, nil
}

// request returns the HTTP API's path and form of the question.
func (q question) request() (path string, form url.Values) {
	form = url.Values{"query": {q.expr}}
	if q.step == 0 {
		form.Set("time", ask.Seconds(q.end.UnixMilli()))
		return "/api/v1/query", form
	}
	form.Set("start", ask.Seconds(q.start.UnixMilli()))
	form.Set("end", ask.Seconds(q.end.UnixMilli()))
	form.Set("step", ask.Seconds(q.step.Milliseconds()))
	return "/api/v1/query_range", form
}

// answer is what the HTTP API answers to queries that succeed.
type answer struct {
	Warnings []string   `json:"warnings"`
	Infos    []string   `json:"infos"`
	Data     resultData `json:"data"`
}

// resultData is a query's result as the API writes it.
type resultData struct {
	Type   model.ValueType `json:"resultType"`
	Result json.RawMessage `json:"result"`
}

// value decodes the result.
func (d resultData) value() (model.Value, error) {
	switch d.Type {
	case model.ValVector:
		return decode(d.Result, model.Vector{})
	case model.ValMatrix:
		return decode(d.Result, model.Matrix{})
	case model.ValScalar:
		v, err := decode(d.Result, model.Scalar{})
		return &v, err
	case model.ValString:
		v, err := decode(d.Result, model.String{})
		return &v, err
	default:
		return nil, fmt.Errorf("read answer: unknown result type %s", d.Type)
	}
}

func decode[V any](raw json.RawMessage, v V) (V, error) {
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	return v, nil
}
