package explain

import (
	"context"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/request"
)

// Sliced is a question as statements that any processes run over the same store. Together, their
// rows are those of the question.
type Sliced struct {
	Undivided string  `json:"undivided,omitempty"` // why there can be one slice only
	Slices    []Slice `json:"slices"`
}

// Slice is some consecutive steps of a range query, or the samples of some time.
type Slice struct {
	From     int64      `json:"from"` // ms
	Upto     int64      `json:"upto"` // ms, inclusive
	SQL      string     `json:"sql"`
	Snapshot divide.Pin `json:"snapshot"` // on which the statement runs
}

// Slices cuts a range query, or the samples of a selector if its step is 0, into slices, at most n
// unless each would have too many steps; large is that of Engine.Parts. It reads no samples. The
// tenant is that of the context.
func Slices(ctx context.Context, e *engine.Engine, q storage.Queryable, ask request.Question, n int, large bool) (*Sliced, error) {
	parts, undivided, err := e.Parts(ctx, q, ask, n, large)
	if err != nil {
		return nil, err
	}
	out := &Sliced{Undivided: undivided, Slices: make([]Slice, len(parts))}
	for i, p := range parts {
		s := &out.Slices[i]
		*s = Slice{From: p.From, Upto: p.Upto, Snapshot: p.Pin}
		if p.Selector != nil {
			s.SQL = samplesOf(p.Selector.LabelMatchers, p.Slice)
			continue
		}
		step := ask.Step.Milliseconds()
		s.SQL = "FROM " + call(p.Text, place{start: p.From, step: step, n: (p.Upto-p.From)/step + 1})
	}
	return out, nil
}

// samplesOf is a statement for the samples that matchers select in a slice.
func samplesOf(matchers []*labels.Matcher, s divide.Slice) string {
	conditions := []string{"ts >= " + moment(s.From), "ts <= " + moment(s.Upto)}
	for _, m := range matchers {
		if c := condition(m); c != "" {
			conditions = append(conditions, c)
		}
	}
	return "SELECT metric, labels, ts, value FROM samples WHERE " + strings.Join(conditions, " AND ")
}
