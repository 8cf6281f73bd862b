package ruletest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// sample is a sample of a result, or an expected one.
type sample struct {
	labels    labels.Labels
	value     float64
	histogram string // in the notation of PromQL's tests; "": a float
}

// String implements fmt.Stringer.
func (s sample) String() string {
	if s.histogram != "" {
		return s.labels.String() + " " + s.histogram
	}
	return s.labels.String() + " " + strconv.FormatFloat(s.value, 'E', -1, 64)
}

// compareSamples compares the result of an expression.
func (e *evaluation) compareSamples(ctx context.Context, c *expressionCase) error {
	got, err := e.query(ctx, c)
	if err != nil {
		return fmt.Errorf("    expr: %q, time: %s, err: %w", c.Expr, c.EvalTime, err)
	}
	want := make([]sample, len(c.Expected))
	for i, x := range c.Expected {
		if want[i], err = e.expected(x); err != nil {
			return fmt.Errorf("    expr: %q, time: %s, err: labels %q: %w", c.Expr, c.EvalTime, x.Labels, err)
		}
	}
	byLabels := func(a, b sample) int { return labels.Compare(a.labels, b.labels) }
	slices.SortFunc(got, byLabels)
	slices.SortFunc(want, byLabels)
	if slices.EqualFunc(want, got, e.same) {
		return nil
	}
	return fmt.Errorf("    expr: %q, time: %s,\n        exp: %v\n        got: %v", c.Expr, c.EvalTime, samplesText(want), samplesText(got))
}

// same reports whether two samples are equal. As with promtool, NaN equals nothing.
func (e *evaluation) same(a, b sample) bool {
	near := a.value == b.value
	if e.fuzzy {
		near = near || math.Nextafter(a.value, math.Inf(-1)) == b.value || math.Nextafter(a.value, math.Inf(1)) == b.value
	}
	return near && a.histogram == b.histogram && labels.Equal(a.labels, b.labels)
}

// expected parses a sample that is expected.
func (e *evaluation) expected(x expectedSample) (s sample, err error) {
	if s.labels, err = e.Parser.ParseMetric(x.Labels); err != nil {
		return s, err
	}
	s.value = x.Value
	if x.Histogram == "" {
		return s, nil
	}
	_, values, err := e.Parser.ParseSeriesDesc("{} " + x.Histogram)
	switch {
	case err != nil:
		return s, err
	case len(values) != 1:
		return s, fmt.Errorf("expected 1 value, got %d", len(values))
	case values[0].Histogram == nil:
		return s, fmt.Errorf("expected histogram, got %v", values[0])
	}
	s.histogram = notation(values[0].Histogram)
	return s, nil
}

// query answers the expression of a case.
func (e *evaluation) query(ctx context.Context, c *expressionCase) ([]sample, error) {
	q, err := e.engine.NewInstantQuery(ctx, e.store, nil, c.Expr, e.origin().Add(time.Duration(c.EvalTime)))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		out := make([]sample, len(v))
		for i, s := range v {
			out[i] = sample{s.Metric.Copy(), s.F, notation(s.H)}
		}
		return out, nil
	case promql.Scalar:
		return []sample{{value: v.V}}, nil
	default:
		return nil, errors.New("rule result is not a vector or scalar")
	}
}

// notation writes a histogram in the notation of PromQL's tests; nil is "".
func notation(h *histogram.FloatHistogram) string {
	if h == nil {
		return ""
	}
	return h.TestExpression()
}

func samplesText(all []sample) string {
	if len(all) == 0 {
		return "nil"
	}
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = s.String()
	}
	return strings.Join(parts, ", ")
}

// dump prints all samples at the end of the test.
func (e *evaluation) dump(ctx context.Context) {
	end := (e.last() + time.Second).Truncate(time.Second)        // PromQL's durations here are whole seconds
	expr := fmt.Sprintf(`{__name__=~".+"}[%v]`, end+time.Second) // a range does not include its begin
	q, err := e.engine.NewInstantQuery(ctx, e.store, nil, expr, e.origin().Add(end))
	if err != nil {
		e.say(fmt.Sprintf("DEBUG: Failed querying, expr: %q, err: %v", expr, err))
		return
	}
	defer q.Close()
	res := q.Exec(ctx)
	if res.Err != nil {
		e.say(fmt.Sprintf("DEBUG: Failed query exec, expr: %q, err: %v", expr, res.Err))
		return
	}
	e.say(fmt.Sprintf("DEBUG: Dump of all data (input_series and rules) at %v:\n%s", end, res.Value))
}

// input is a series whose samples are not all stored yet.
type input struct {
	labels labels.Labels
	rest   []inputSample // ascending
}

type inputSample struct {
	t  int64 // ms
	v  float64
	fh *histogram.FloatHistogram
}

// store is the TSDB of one test, in a temporary directory.
type store struct {
	*tsdb.DB
	input []*input
}

// headRange is how much time the TSDB keeps in memory. Samples may be half of it late, which is
// what a query_offset makes of them.
const headRange = 24 * time.Hour

// until stores the samples of the input up to a time.
func (s *store) until(ctx context.Context, at time.Time) error {
	app := s.AppenderV2(ctx)
	for _, in := range s.input {
		for len(in.rest) > 0 && in.rest[0].t <= at.UnixMilli() {
			x := in.rest[0]
			if _, err := app.Append(0, in.labels, 0, x.t, x.v, nil, x.fh, storage.AppendV2Options{}); err != nil {
				return errors.Join(fmt.Errorf("input_series %s at %s: %w", in.labels, time.UnixMilli(x.t).UTC().Format(time.RFC3339), err), app.Rollback())
			}
			in.rest = in.rest[1:]
		}
	}
	return app.Commit()
}
