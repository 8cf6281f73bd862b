package promblocktest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Question is a PromQL query of instant or range vectors.
type Question struct {
	Text     string
	From, To int64         // ms
	Step     time.Duration // 0: an instant query at From
}

// String describes the question.
func (q Question) String() string {
	return fmt.Sprintf("%s from %d to %d every %s", q.Text, q.From, q.To, q.Step)
}

// Ask returns the answer of an engine as text, with the bits of all floats: a line for each series,
// or the error of the query.
func (q Question) Ask(ctx context.Context, e promql.QueryEngine, from storage.Queryable) (string, error) {
	asked, err := q.prepare(ctx, e, from)
	if err != nil {
		return "", err
	}
	defer asked.Close()
	res := asked.Exec(ctx)
	if res.Err != nil {
		return "error: " + res.Err.Error(), nil
	}
	var lines []string
	switch v := res.Value.(type) {
	case promql.Vector:
		for _, s := range v {
			line := series{promql.Series{Metric: s.Metric}}
			if s.H != nil {
				line.Histograms = []promql.HPoint{{T: s.T, H: s.H}}
			} else {
				line.Floats = []promql.FPoint{{T: s.T, F: s.F}}
			}
			lines = append(lines, line.text())
		}
	case promql.Matrix:
		for _, s := range v {
			lines = append(lines, series{s}.text())
		}
	default:
		return "", fmt.Errorf("the answer to %s is a %s, want a vector or a matrix", q.Text, v.Type())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

func (q Question) prepare(ctx context.Context, e promql.QueryEngine, from storage.Queryable) (promql.Query, error) {
	if q.Step == 0 {
		return e.NewInstantQuery(ctx, from, nil, q.Text, time.UnixMilli(q.From))
	}
	return e.NewRangeQuery(ctx, from, nil, q.Text, time.UnixMilli(q.From), time.UnixMilli(q.To), q.Step)
}

// series is a line of an answer.
type series struct{ promql.Series }

func (s series) text() string {
	var b strings.Builder
	b.WriteString(s.Metric.String())
	for _, p := range s.Floats {
		bits := math.Float64bits(p.F)
		if math.IsNaN(p.F) { // its payload depends on the processor
			bits = math.Float64bits(math.NaN())
		}
		fmt.Fprintf(&b, " %d:%x", p.T, bits)
	}
	for _, p := range s.Histograms {
		fmt.Fprintf(&b, " %d:%s", p.T, p.H)
	}
	return b.String()
}
