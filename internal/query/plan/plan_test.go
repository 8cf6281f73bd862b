package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// known is the series of the golden plans.
var known = []labels.Labels{
	labels.FromStrings(model.MetricNameLabel, "c_total", "inst", "1", "job", "a"),
	labels.FromStrings(model.MetricNameLabel, "c_total", "inst", "1", "job", "b"),
	labels.FromStrings(model.MetricNameLabel, "c_total", "inst", "2", "job", "a"),
	labels.FromStrings(model.MetricNameLabel, "d_total", "inst", "1", "job", "a"),
	labels.FromStrings(model.MetricNameLabel, "g", "job", "a"),
}

// resolveKnown resolves selectors to known series, with 100 samples each and IDs from 1 on. refused
// maps a metric to the reason not to push its selectors.
func resolveKnown(selectors []Selector, refused map[string]string) map[*parser.VectorSelector]*Resolution {
	out := map[*parser.VectorSelector]*Resolution{}
	for _, s := range selectors {
		r := &Resolution{Refused: refused[s.Expr.Name], Starts: true}
	series:
		for i, l := range known {
			for _, m := range s.Matchers {
				if !m.Matches(l.Get(m.Name)) {
					continue series
				}
			}
			r.Series = append(r.Series, Series{ID: uint64(i + 1), Labels: l})
			r.Rows += 100
		}
		out[s.Expr] = r
	}
	return out
}

func planKnown(t testing.TB, text string, o Options, refused map[string]string) *Plan {
	expr, err := testParser.ParseExpr(text)
	require.NoError(t, err)
	q, err := Prepare(expr, o)
	require.NoError(t, err)
	return q.Build(resolveKnown(q.Selectors(), refused))
}

// scansOf returns placeholders for the scans of a subtree's leaves.
func scansOf(p *Pushed) []Scan {
	out := make([]Scan, len(p.Leaves))
	for i := range out {
		out[i] = Scan(fmt.Sprintf("SCAN %d", i))
	}
	return out
}

// explained formats a plan with the statements of its subtrees.
func explained(p *Plan) string {
	var sb strings.Builder
	sb.WriteString(p.String())
	for _, s := range p.Pushed {
		fmt.Fprintf(&sb, "sql %s: %s\n", s.Name, s.Statement(scansOf(s), "").SQL)
	}
	return sb.String()
}

var instant = Options{Start: 600_000, End: 600_000, Lookback: 5 * time.Minute, DefaultSubqueryStep: time.Minute}

func ranged(o Options) Options {
	o.End, o.Step = 700_000, 30_000
	return o
}

func TestPlans(t *testing.T) {
	delayed, few, kernels := ranged(instant), ranged(instant), ranged(instant)
	delayed.DelayedNames, few.MinRows = true, 250
	kernels.MinRows, kernels.Kernels = 1000, true
	starts, bounded := ranged(instant), ranged(instant)
	starts.StartTimestamps, bounded.MaxRows = true, 150
	for _, tc := range []struct {
		name, text string
		options    Options
		refused    map[string]string
		want       string
	}{
		{"a selector alone", `g`, instant, nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 1 series on start=600000 step=1 n=1
  instant {__name__="g"} start=600000 step=1 n=1 range=300000 shift=0: 1 series, 100 samples
sql 0: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"a range function", `rate(c_total[2m] offset 1m)`, ranged(instant), nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 3 series on start=600000 step=30000 n=4
  rate {__name__="c_total"} start=540000 step=30000 n=4 range=120000 shift=60000: 3 series, 300 samples
sql 0: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"names that stay until the end", `sum by (job) (rate(c_total[2m]))`, delayed, nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 2 series on start=600000 step=30000 n=4
  sum by (job): 2 series
    rate {__name__="c_total"} start=600000 step=30000 n=4 range=120000 shift=0: 3 series, 300 samples
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"names that would have to be dropped later", `label_replace(rate({__name__=~"[cd]_total"}[2m]), "x", "y", "", "")`, delayed, map[string]string{}, `
engine: label_replace(rate({__name__=~"[cd]_total"}[2m]), "x", "y", "", "")
kept: label_replace(rate({__name__=~"[cd]_total"}[2m]), "x", "y", "", ""): two series would have the same labels
kept: rate({__name__=~"[cd]_total"}[2m]): the engine would see metric names that are to be dropped
`},
		{"one step for all", `quantile(0.5, rate(c_total[2m] @ 650))`, ranged(instant), nil, `
engine: {__promlake_pushed__="0"} @ 600.000
pushed 0: 1 series on start=600000 step=30000 n=1
  quantile 0.5: 1 series
    rate {__name__="c_total"} start=650000 step=30000 n=1 range=120000 shift=-50000: 3 series, 300 samples
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_quantile(i, v, 'phi=0.5') AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"a parameter that is read", `clamp(c_total{job="b"}, -1.5, scalar(g))`, ranged(instant), nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 1 series on start=600000 step=30000 n=4
  clamp -1.5 scalar: 1 series
    instant {job="b",__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 1 series, 100 samples
    scalar
      instant {__name__="g"} start=600000 step=30000 n=4 range=300000 shift=0: 1 series, 100 samples
sql 0: WITH n0 AS (SCAN 0), n1 AS (SCAN 1), n2 AS (SELECT 0::UINTEGER AS i, prom_scalar(v, 'n=4') AS v FROM n1), n3 AS (SELECT i, prom_math('clamp', v, ['-1.5'::DOUBLE], prom_unpack((SELECT prom_pack(v) FROM n2))) AS v FROM n0) SELECT i, v FROM n3 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"a refused selector", `sum(c_total) / sum(g)`, ranged(instant), map[string]string{"g": "it has native histograms"}, `
engine: {__promlake_pushed__="0"} / sum(g)
pushed 0: 1 series on start=600000 step=30000 n=4
  sum: 1 series
    instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
kept: g: it has native histograms
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"too few samples", `sum(g) / sum(c_total)`, few, nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 1 series on start=600000 step=30000 n=4
  /: 1 series
    sum: 1 series
      instant {__name__="g"} start=600000 step=30000 n=4 range=300000 shift=0: 1 series, 100 samples
    sum: 1 series
      instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)), n2 AS (SCAN 1), n3 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $2) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n2 GROUP BY 1)), n4 AS (SELECT prom_at(l.i, $1) AS i, prom_binary('/', l.v, r.v) AS v FROM n1 AS l JOIN n3 AS r ON prom_at(l.i, $1) = prom_at(r.i, $1)) SELECT i, v FROM n4 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"too few samples in a part", `sum(g) / count_values("x", sum by (job) (c_total))`, few, nil, `
engine: sum(g) / count_values("x", {__promlake_pushed__="0"})
pushed 0: 2 series on start=600000 step=30000 n=4
  sum by (job): 2 series
    instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
kept: sum(g): its selectors have about 100 samples, fewer than 250
kept: count_values("x", sum by (job) (c_total)): count_values makes labels of values
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"too few samples, without a statement", `sum(rate(c_total[1m])) / sum(g)`, kernels, nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 1 series on start=600000 step=30000 n=4
  /: 1 series
    sum: 1 series
      rate {__name__="c_total"} start=600000 step=30000 n=4 range=60000 shift=0: 3 series, 300 samples
    sum: 1 series
      instant {__name__="g"} start=600000 step=30000 n=4 range=300000 shift=0: 1 series, 100 samples
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)), n2 AS (SCAN 1), n3 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $2) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n2 GROUP BY 1)), n4 AS (SELECT prom_at(l.i, $2) AS i, prom_binary('/', l.v, r.v) AS v FROM n1 AS l JOIN n3 AS r ON prom_at(l.i, $2) = prom_at(r.i, $2)) SELECT i, v FROM n4 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"too few samples, in part without a statement", `count_values("v", rate(c_total[1m])) / topk(1, c_total)`, kernels, nil, `
engine: count_values("v", {__promlake_pushed__="0"}) / {__promlake_pushed__="1"}
pushed 0: 3 series on start=600000 step=30000 n=4
  rate {__name__="c_total"} start=600000 step=30000 n=4 range=60000 shift=0: 3 series, 300 samples
pushed 1: 3 series on start=600000 step=30000 n=4
  topk 1: 3 series
    instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
kept: count_values("v", rate(c_total[1m])): count_values makes labels of values
sql 0: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
sql 1: WITH n0 AS (SCAN 0), n1 AS (SELECT s.i AS i, s.v AS v FROM (SELECT unnest(prom_topk(i, v, 'k=1 n=4')) AS s FROM n0)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"one read for two", `c_total / (c_total offset 1m) - c_total`, ranged(instant), nil, `
engine: {__promlake_pushed__="0"}
pushed 0: 3 series on start=600000 step=30000 n=4
  -: 3 series
    /: 3 series
      instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
      instant {__name__="c_total"} start=540000 step=30000 n=4 range=300000 shift=60000: 3 series, 300 samples
    instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
sql 0: WITH n0 AS MATERIALIZED (SCAN 0), n1 AS (SCAN 1), n2 AS (SELECT prom_at(l.i, $1) AS i, prom_binary('/', l.v, r.v) AS v FROM n0 AS l JOIN n1 AS r ON prom_at(l.i, $1) = prom_at(r.i, $1)), n3 AS (SELECT prom_at(l.i, $1) AS i, prom_binary('-', l.v, r.v) AS v FROM n2 AS l JOIN n0 AS r ON prom_at(l.i, $1) = prom_at(r.i, $1)) SELECT i, v FROM n3 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"two series of the same labels", `sum(rate({__name__=~"[cd]_total"}[2m]))`, ranged(instant), nil, `
engine: sum(rate({__name__=~"[cd]_total"}[2m]))
kept: rate({__name__=~"[cd]_total"}[2m]): two series would have the same labels
`},
		{"start timestamps", `rate(c_total[2m]) / delta(c_total[2m])`, starts, nil, `
engine: rate(c_total[2m]) / {__promlake_pushed__="0"}
pushed 0: 3 series on start=600000 step=30000 n=4
  delta {__name__="c_total"} start=600000 step=30000 n=4 range=120000 shift=0: 3 series, 300 samples
kept: rate(c_total[2m]): rate() reads start timestamps
sql 0: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"more at once than allowed", `stddev(c_total) / sum(rate(d_total[1m]))`, bounded, nil, `
engine: stddev({__promlake_pushed__="0"}) / {__promlake_pushed__="1"}
pushed 0: 3 series on start=600000 step=30000 n=4
  instant {__name__="c_total"} start=600000 step=30000 n=4 range=300000 shift=0: 3 series, 300 samples
pushed 1: 1 series on start=600000 step=30000 n=4
  sum: 1 series
    rate {__name__="d_total"} start=600000 step=30000 n=4 range=60000 shift=0: 1 series, 100 samples
kept: stddev(c_total) / sum(rate(d_total[1m])): it needs about 400 samples at once, more than 150
kept: stddev(c_total): it needs about 300 samples at once, more than 150
sql 0: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
sql 1: WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, '') AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL
`},
		{"a scalar below the engine", `min_of(scalar(g), 1) + count_values("x", g)`, instant, map[string]string{}, `
engine: scalar({__promlake_pushed__="0"}) + count_values("x", {__promlake_pushed__="1"})
pushed 0: 1 series on start=600000 step=1 n=1
  clamp_max 1
    scalar
      instant {__name__="g"} start=600000 step=1 n=1 range=300000 shift=0: 1 series, 100 samples
pushed 1: 1 series on start=600000 step=1 n=1
  instant {__name__="g"} start=600000 step=1 n=1 range=300000 shift=0: 1 series, 100 samples
kept: count_values("x", g): count_values makes labels of values
sql 0: WITH n0 AS (SCAN 0), n1 AS (SELECT 0::UINTEGER AS i, prom_scalar(v, 'n=1') AS v FROM n0), n2 AS (SELECT i, prom_math('clamp_max', v, ['1'::DOUBLE], NULL::DOUBLE[]) AS v FROM n1) SELECT i, v FROM n2 WHERE i IS NOT NULL AND v IS NOT NULL
sql 1: WITH n0 AS (SCAN 0) SELECT i, v FROM n0 WHERE i IS NOT NULL AND v IS NOT NULL
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, strings.TrimLeft(tc.want, "\n"), explained(planKnown(t, tc.text, tc.options, tc.refused)))
		})
	}
}
