package sql

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/sql/views"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Table functions that statements may call.
const (
	metricFunction = "promlake_metric"
	promqlFunction = "promql"
)

// metricTable is a call of promlake_metric: it has the same columns each time that the statement is
// planned.
type metricTable struct {
	shape      *views.Wide
	mint, maxt int64 // ms
	matcher    *labels.Matcher
}

// base is what the arguments admit.
func (m *metricTable) base() pushdown.Constraint {
	return pushdown.Constraint{MinT: m.mint, MaxT: m.maxt, Sets: [][]*labels.Matcher{{m.matcher}}}
}

// bindMetric returns the table promlake_metric(name, start, end): the samples of a metric, with a
// column for each label that its series have in the time range.
func (x *execution) bindMetric(arguments []*string) (table.Table, error) {
	name, mint, maxt, err := metricArguments(arguments)
	if err != nil {
		return nil, err
	}
	k := metricKey(name, mint, maxt)
	m, err := x.metricTable(k, name, mint, maxt)
	if err != nil {
		return nil, err
	}
	return &views.Samples{Store: x.Store, Reader: &reader{x, k, m.base()}, Shape: m.shape}, nil
}

// metricArguments reads the arguments of promlake_metric.
func metricArguments(arguments []*string) (name string, mint, maxt int64, err error) {
	if len(arguments) != 3 || arguments[0] == nil {
		return "", 0, 0, errors.New("the name of the metric is NULL")
	}
	mint, maxt, err = bounds(arguments[1], arguments[2], key.MinTime, key.MaxTime)
	return *arguments[0], mint, maxt, err
}

// metricKey identifies a call of promlake_metric.
func metricKey(name string, mint, maxt int64) string {
	return fmt.Sprintf("%s %d %d %s", metricFunction, mint, maxt, name)
}

func (x *execution) metricTable(k, name string, mint, maxt int64) (*metricTable, error) {
	x.mu.Lock()
	m := x.metrics[k]
	x.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m = &metricTable{mint: mint, maxt: maxt, matcher: labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, name)}
	_, err := x.Snapshots.Range(mint, maxt).Read(x.ctx, func(snap catalog.Snapshot) error {
		found, err := x.Store.Series.Series(x.ctx, snap, mint, maxt, []*labels.Matcher{m.matcher})
		if err != nil {
			return err
		}
		m.shape = views.NewWide(found)
		return nil
	})
	if err != nil {
		return nil, x.fail(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.metrics[k] = m
	return m, nil
}

// bindPromQL returns the table promql(expr, start, end, step): the values of a PromQL expression.
func (x *execution) bindPromQL(arguments []*string) (table.Table, error) {
	if arguments[0] == nil {
		return nil, errors.New("the PromQL expression is NULL")
	}
	if err := x.question.Expressions.Check(*arguments[0]); err != nil {
		return nil, err
	}
	start, err := moment("start", arguments[1])
	if err != nil {
		return nil, err
	}
	end, err := moment("end", arguments[2])
	if err != nil {
		return nil, err
	}
	every, err := step(arguments[3])
	if err != nil {
		return nil, err
	}
	if end.Before(start) {
		return nil, errors.New("end is before start")
	}
	p := &promqlTable{x, *arguments[0], start, end, every}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	defer q.Close()
	if stmt, ok := q.Statement().(*parser.EvalStmt); ok {
		x.reach(promql.FindMinMaxTime(stmt))
	}
	// A call is bound each time that the statement is planned.
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.ContainsFunc(x.calls, func(q *promqlTable) bool { return *q == *p }) {
		x.calls = append(x.calls, p)
	}
	return &views.Values{Eval: p.eval}, nil
}

// promqlTable is a call of promql.
type promqlTable struct {
	x          *execution
	text       string
	start, end time.Time
	step       time.Duration
}

func (p *promqlTable) query() (promql.Query, error) {
	q, err := p.x.Engine.NewRangeQuery(p.x.ctx, p.x.Queryable, nil, p.text, p.start, p.end, p.step)
	if err != nil {
		return nil, fmt.Errorf("PromQL expression %q: %w", p.text, err)
	}
	return q, nil
}

// eval evaluates the expression on the statement's snapshot.
func (p *promqlTable) eval() (out promql.Matrix, err error) {
	q, err := p.query()
	if err != nil {
		return nil, p.x.fail(err)
	}
	defer q.Close()
	r := request.From(p.x.ctx)
	r.Snapshot = &request.Snapshot{Snapshot: p.x.snap, Wide: p.x.wide, Pinned: r.Snapshot.IsPinned()}
	res := q.Exec(request.With(p.x.ctx, r))
	if res.Err != nil {
		return nil, p.x.fail(p.failure(res.Err))
	}
	m, err := res.Matrix()
	if err != nil {
		return nil, p.x.fail(&FailedError{fmt.Sprintf("PromQL expression %q: %v", p.text, err)})
	}
	p.x.note(res.Warnings)
	for _, s := range m { // the result's memory is the query's
		if len(s.Histograms) > 0 {
			return nil, p.x.fail(&FailedError{fmt.Sprintf("PromQL expression %q has native histograms as values, and the column value is a DOUBLE; "+
				"apply histogram_quantile, histogram_sum, histogram_count or histogram_avg", p.text)})
		}
		s.Floats = append([]promql.FPoint(nil), s.Floats...)
		out = append(out, s)
	}
	return out, nil
}

// failure gives an error of the expression itself, such as an invalid label's name, its type.
// Errors of the store wrap others; limits and cancellations have types of their own.
func (p *promqlTable) failure(err error) error {
	var limit interface{ QueryLimit() bool }
	switch err.(type) {
	case promql.ErrQueryCanceled, promql.ErrQueryTimeout, promql.ErrTooManySamples, promql.ErrStorage:
		return err
	}
	if errors.Unwrap(err) != nil || errors.As(err, &limit) || errors.As(err, new(promql.ErrStorage)) {
		return err
	}
	return &FailedError{fmt.Sprintf("PromQL expression %q: %v", p.text, err)}
}

// reach notes a time range (ms) that the snapshot has to cover.
func (x *execution) reach(mint, maxt int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached[0], x.reached[1] = min(x.reached[0], mint), max(x.reached[1], maxt)
}

// nothing is the range that reaches nothing.
var nothing = [2]int64{math.MaxInt64, math.MinInt64}

// fail records the first error of a table with its type, which DuckDB loses.
func (x *execution) fail(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = err
	}
	return err
}
