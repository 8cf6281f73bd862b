package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
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
	from, err := parseTime("start", start, now)
	if err != nil {
		return question{}, err
	}
	to, err := parseTime("end", end, now)
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
		form.Set("time", seconds(q.end.UnixMilli()))
		return "/api/v1/query", form
	}
	form.Set("start", seconds(q.start.UnixMilli()))
	form.Set("end", seconds(q.end.UnixMilli()))
	form.Set("step", seconds(q.step.Milliseconds()))
	return "/api/v1/query_range", form
}

// seconds writes ms as the API takes times and durations.
func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

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

// post sends a form and returns the answer of success, whose body the caller closes.
func post(ctx context.Context, client *http.Client, address string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return nil, fmt.Errorf("read answer of status %d: %w", resp.StatusCode, err)
	}
	var e struct {
		Kind  string `json:"errorType"`
		Error string `json:"error"`
	}
	if json.Unmarshal(b, &e) != nil || e.Error == "" {
		return nil, fmt.Errorf("the server answers %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	return nil, fmt.Errorf("%s: %s", e.Kind, e.Error)
}

// postJSON is post of a query, and decodes the JSON that is answered.
func postJSON(ctx context.Context, client *http.Client, address string, form url.Values, into any) error {
	resp, err := post(ctx, client, address, form)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if err := errors.Join(json.NewDecoder(resp.Body).Decode(into), resp.Body.Close()); err != nil {
		return fmt.Errorf("read answer of status %d: %w", resp.StatusCode, err)
	}
	return nil
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
