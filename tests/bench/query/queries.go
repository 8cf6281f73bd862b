package query

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

const (
	step     = time.Minute
	maxSteps = 480
	warmUp   = 20 * time.Minute // of the main data, before the first step if there is room
)

// Question is a query for every server, or several of one kind.
type Question struct {
	Name  string        `json:"name,omitempty"` // default: the text
	Text  string        `json:"query"`
	Start time.Time     `json:"start"` // of an instant query: equal to End
	End   time.Time     `json:"end"`
	Step  time.Duration `json:"step_ns,omitempty"` // 0 = step
	// Ties: the series in the answer depend on differences that servers may round away, so only its
	// size is compared with VictoriaMetrics's.
	Ties bool `json:"-"`
	// Variants are sent in turn instead of the question itself, if there are any.
	Variants []Question `json:"variants,omitempty"`
	// Each: a turn of a server sends every variant once, however long that takes.
	Each bool `json:"each,omitempty"`
}

// mixedQuestions returns the queries over the data set mixed: range queries over the last 480 steps
// of a minute, or fewer if there is less, and instant queries at the end.
func (s scale) mixedQuestions() []Question {
	end := s.end().Truncate(step)
	steps := min(maxSteps, max(1, int((end.Sub(start)-warmUp)/step)))
	ranged := func(text string) Question {
		return Question{Text: text, Start: end.Add(-time.Duration(steps-1) * step), End: end}
	}
	top := ranged(`topk(5, avg_over_time(m[1h]))`)
	top.Ties = true
	return []Question{
		ranged(`sum by (g) (rate(m[5m]))`),
		ranged(`sum by (g) (rate(m{dc="dc3"}[5m]))`),
		ranged(`sum(max_over_time(m[5m]))`),
		top,
		ranged(`rate(a[5m]) / rate(b[5m])`),
		ranged(`histogram_quantile(0.99, sum by (le) (rate(h_bucket[5m])))`),
		ranged(`m{instance="host-000:9100",n="7"}`),
		ranged(`sum(quantile_over_time(0.9, m[5m]))`),
		{Text: `sum by (g) (rate(m[5m]))`, Start: end, End: end},
		{Text: fmt.Sprintf(`max(max_over_time(l[%s]))`, model.Duration(s.History)), Start: end, End: end},
	}
}

// variant returns the question that is sent as the n-th.
func (q Question) variant(n int) Question {
	if len(q.Variants) == 0 {
		return q
	}
	return q.Variants[n%len(q.Variants)]
}

func (q Question) instant() bool { return q.Start.Equal(q.End) }

// name identifies the question.
func (q Question) name() string {
	if q.Name != "" {
		return q.Name
	}
	if q.instant() {
		return q.Text + ", instant"
	}
	return q.Text
}

// path returns the request for the question, below a server's root.
func (q Question) path() string {
	unix := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	// nocache: VictoriaMetrics keeps answers
	v := url.Values{"query": {q.Text}, "nocache": {"1"}, "timeout": {"2m"}}
	if q.instant() {
		v.Set("time", unix(q.End))
		return "/api/v1/query?" + v.Encode()
	}
	v.Set("start", unix(q.Start))
	v.Set("end", unix(q.End))
	v.Set("step", strconv.Itoa(int(cmp.Or(q.Step, step).Seconds())))
	return "/api/v1/query_range?" + v.Encode()
}
