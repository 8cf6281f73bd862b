package plan

import (
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oneSample is series with one sample each, at the time of the query.
const oneSample = `
load 10m
	m{job="a", inst="1"}  _ 1
	m{job="a", inst="2"}  _ 2
	m{job="b", inst="1"}  _ 3
	m{inst="1"}           _ 4
	n{job="a", inst="1"}  _ 5
	n{job="c", inst="9"}  _ 6
	typed{job="a", __type__="gauge", __unit__="s"}    _ 7
	typed{job="a", __type__="counter", __unit__="s"}  _ 8
	typed{job="b", __type__="counter"}                _ 9
	{job="nameless"}                                  _ 10
`

// algebra are operations that keep a value of every series that has one.
var algebra = []string{
	`m`, `{job="a"}`, `{job="nameless"}`, `last_over_time({__name__=~"m|n"}[1m])`, `sum_over_time(m[1m])`, `sum_over_time({__name__=~"m|n"}[1m])`,
	`sum_over_time(typed[1m])`, `sum_over_time(typed{job="b"}[1m])`, `timestamp(m)`, `timestamp({__name__=~"m|n"})`, `abs(m)`, `-m`, `-{job=~"a|c"}`, `-typed`, `+typed`,
	`round({job="nameless"})`, `abs(last_over_time(m[1m]))`,
	`sum(m)`, `sum by () (m)`, `sum by (job) (m)`, `sum by (inst, job) (m)`, `sum by (job, inst, job) (m)`, `sum by (nope) (m)`, `sum by (nope, inst) (m)`,
	`sum without () (m)`, `sum without (job) (m)`, `sum without (inst, job) (m)`, `sum without (nope) (m)`, `sum without (__name__) (m)`, `sum without (job) ({__name__=~"m|n"})`,
	`sum by (__name__) ({__name__=~"m|n"})`, `sum by (__name__, job) ({job=~".+"})`, `sum by (job) ({__name__=~"m|n"})`,
	`sum by (__type__) (typed)`, `sum by (__name__, __unit__) (typed)`, `sum without (job) (typed)`, `sum without (__type__) (typed)`,
	`sum by (__name__) (abs({__name__=~"m|n"}))`, `sum by (__name__) (-m)`, `sum by (__type__) (abs(typed))`, `sum without (job) (abs(typed))`, `max without (__type__) (-typed)`,
	`min by (__name__) (sum by (__name__, job) (sum_over_time(m[1m])))`, `count(sum by (job) (-m))`, `-sum by (job) (m)`, `abs(sum by (__name__) (m))`,
	`-sum without (job) (abs(typed))`, `sum by (__type__) (sum by (__type__, job) (abs(typed)))`, `quantile by (inst) (0.5, m)`, `group without (inst) (abs({__name__=~"m|n"}))`,
}

// TestLabelsAreUpstreams compares the planner's labels of results with upstream's, in upstream's
// order.
func TestLabelsAreUpstreams(t *testing.T) {
	store := inOrder{promqltest.LoadedStorage(t, oneSample), nil}
	w := window{600_000, 600_000, 0}
	for _, delayed := range []bool{false, true} {
		engine := testEngine(t, delayed)
		for _, text := range algebra {
			want := w.query(t, engine, store, text, nil).Exec(t.Context())
			plan := planFor(t, store, text, w.options(delayed))
			whole := len(plan.Pushed) == 1 && plan.Expr.String() == `{`+PushedLabel+`="0"}`
			if want.Err != nil {
				assert.False(t, whole, "delayed=%t: %s fails with %v, and yet it was pushed", delayed, text, want.Err)
				continue
			}
			require.True(t, whole, "delayed=%t: %s\n%s", delayed, text, plan)
			var upstream, ours []string
			for _, s := range want.Value.(promql.Vector) {
				upstream = append(upstream, s.Metric.String())
			}
			for _, l := range plan.Pushed[0].Labels {
				ours = append(ours, l.String())
			}
			assert.Equal(t, upstream, ours, "delayed=%t: %s", delayed, text)
		}
	}
}
