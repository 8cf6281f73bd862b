package laketest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
)

// PushAll and PushNone decide where queries are evaluated: in SQL what it can, or nothing.
var (
	PushAll  = query.Settings{MinPushedSamples: -1}
	PushNone = query.Settings{MinPushedSamples: math.MaxInt64}
)

// PushedQueries are expressions over the series of PushRows.
var PushedQueries = []string{
	`m1`, `m1 offset 7m`, `m1 @ end()`, `{__name__=~"m[12]",i="1"}`, `rate(m1[5m])`, `sum by (job) (rate(m1[5m]))`, `sum(increase(m2[10m] offset 3m))`,
	`max_over_time(m1{job="a"}[7m])`, `min by (job) (min_over_time(m1[7m]))`, `avg without (i) (m2)`, `count(m1) by (job)`, `stddev(m1)`, `quantile(0.9, m1)`,
	`topk(2, m1)`, `m1 + on (i, job) m2`, `m1 > 500`, `m1 > bool 500`, `m1 and m2`, `m1 or m2`, `m1 unless on (i) m2{job="a"}`, `-m1`, `abs(m1 - 500)`,
	`clamp(m1, 100, 200)`, `changes(m1[10m])`, `resets(m2[10m])`, `irate(m1[3m])`, `delta(m1[5m])`, `deriv(m1[5m])`, `predict_linear(m1[10m], 600)`,
	`quantile_over_time(0.5, m1[10m])`, `count_over_time(m1[10m])`, `last_over_time(m1[10m])`, `present_over_time(m1[10m])`, `stddev_over_time(m1[10m])`,
	`absent(m1{job="nobody"})`, `absent_over_time(m1[5m])`, `scalar(m1{i="1",job="a"})`, `label_replace(m1, "x", "$1", "i", "(.*)")`,
	`max_over_time(rate(m1[5m])[30m:3m])`, `sum(m1) / count(m1)`, `group_left_missing`, `timestamp(m1)`, `hour()`, `vector(1)`,
	`m1 * on (job) group_left sum by (job) (m2)`, `sum(m1 * 2) by (i) > 100`, `histogram_quantile(0.9, sum by (le) (rate(b[5m])))`,
}

// PushRows are series of floats in the time before Now, with gaps, resets, stale markers and
// values that are not numbers.
func PushRows() []segment.Row { return PushRowsOf(4) }

// PushRowsOf are PushRows with n values of the label i.
func PushRowsOf(n int) []segment.Row {
	rng := rand.New(rand.NewPCG(3, 4))
	now := Now().UnixMilli()
	var rows []segment.Row
	add := func(name string, pairs ...string) {
		r := segment.Row{Labels: Metric(name, pairs...)}
		v := 0.0
		for t := now - 200*minute + rng.Int64N(10_000); t <= now; t += 15_000 + rng.Int64N(200) {
			switch rng.IntN(60) {
			case 0:
				t += rng.Int64N(12 * minute)
			case 1:
				v = 0
			case 2:
				r.Floats = append(r.Floats, segment.Float{T: t, V: math.Float64frombits(value.StaleNaN)})
				continue
			case 3:
				r.Floats = append(r.Floats, segment.Float{T: t, V: Pick(rng.IntN(2) == 0, math.NaN(), math.Inf(1))})
				continue
			}
			v += float64(rng.IntN(1000)) / 10
			r.Floats = append(r.Floats, segment.Float{T: t, V: v})
		}
		rows = append(rows, r)
	}
	for i := range n {
		for _, job := range []string{"a", "b", "c"} {
			add("m1", "i", fmt.Sprint(i), "job", job)
			if i != 2 {
				add("m2", "i", fmt.Sprint(i), "job", job)
			}
		}
	}
	for _, le := range []string{"0.1", "1", "+Inf"} {
		add("b", "le", le, "job", "a")
	}
	return rows
}
