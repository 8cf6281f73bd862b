package plan

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSelectorsWithTheirTimes checks which selectors are resolved, and for which times (in seconds,
// exclusive and inclusive). The range is 600 s to 720 s with a step of 50 s, so the last step is at
// 700 s.
func TestSelectorsWithTheirTimes(t *testing.T) {
	type want struct {
		text  string
		after float64
		upTo  float64
	}
	for text, wants := range map[string][]want{
		`a`:                                       {{`a`, 300, 700}},
		`a offset 10s`:                            {{`a offset 10s`, 290, 690}},
		`rate(a[1m] offset -10s)`:                 {{`a offset -10s`, 550, 710}},
		`a @ 100`:                                 {{`a @ 100.000`, -200, 100}},
		`sum(rate(a[1m] @ end() offset 5s))`:      {{`a @ 720.000 offset 5s`, 655, 715}},
		`quantile(scalar(a), b) / b`:              {{`a`, 300, 700}, {`b`, 300, 700}, {`b`, 300, 700}},
		`max_over_time(a[2m:1m])`:                 {{`a`, 240, 660}}, // 540, 600, 660
		`max_over_time(a[2m:1m] offset 30s)`:      {{`a`, 180, 660}}, // 480, ..., 660
		`max_over_time(rate(a[30s])[2m:] @ 1000)`: {{`a`, 870, 960}},
		`max_over_time(a[2m:1m] @ 1000)`:          {{`a`, 600, 960}},
		`info(a) + b`:                             {{`b`, 300, 700}},
		`histogram_count(a) or rate(b[1m] smoothed) or a anchored`: {{`a`, 300, 700}},
		`histogram_quantile(0.9, rate(a[1m]))`:                     {{`a`, 540, 700}},
		`start_timestamp(a)`:                                       nil,
		`time() + 1`:                                               nil,
	} {
		expr, err := testParser.ParseExpr(text)
		require.NoError(t, err)
		q, err := Prepare(expr, Options{Start: 600_000, End: 720_000, Step: 50_000, Lookback: 5 * time.Minute, DefaultSubqueryStep: time.Minute})
		require.NoError(t, err)
		var got []want
		for _, s := range q.Selectors() {
			got = append(got, want{s.Expr.String(), float64(s.MinT-1) / 1000, float64(s.MaxT) / 1000})
		}
		assert.Equal(t, wants, got, text)
	}
}

// TestLeavesReadWhatSelectorsAskFor: a leaf reads only samples for which its selector was resolved.
func TestLeavesReadWhatSelectorsAskFor(t *testing.T) {
	for _, text := range []string{`c_total`, `rate(c_total[1m] offset 3m)`, `sum(g @ 500 offset -1s)`, `timestamp(c_total @ end())`, `abs(max_over_time(g[1m]))`} {
		expr, err := testParser.ParseExpr(text)
		require.NoError(t, err)
		q, err := Prepare(expr, ranged(instant))
		require.NoError(t, err)
		p := q.Build(resolveKnown(q.Selectors(), nil))
		require.Len(t, p.Pushed, 1, text)
		mint, maxt := p.Pushed[0].Leaves[0].Range()
		assert.Equal(t, q.Selectors()[0].MinT, mint, text)
		assert.Equal(t, q.Selectors()[0].MaxT, maxt, text)
	}
}

// TestQueryThatEndsBeforeItStarts: a query without times resolves and pushes nothing.
func TestQueryThatEndsBeforeItStarts(t *testing.T) {
	expr, err := testParser.ParseExpr(`sum(a @ 5)`)
	require.NoError(t, err)
	q, err := Prepare(expr, Options{Start: 600_000, End: 500_000, Step: 50_000})
	require.NoError(t, err)
	assert.Empty(t, q.Selectors())
	p := q.Build(nil)
	assert.Empty(t, p.Pushed)
	assert.Equal(t, `sum(a @ 5.000)`, p.Expr.String())
}

func TestConstants(t *testing.T) {
	for text, want := range map[string]float64{
		`1`: 1, `-(2)`: -2, `+3`: 3, `pi()`: math.Pi, `1 + 2 * 3`: 7, `7 - 9`: -2, `1 / 0`: math.Inf(1), `7 % 4`: 3, `2 ^ 10`: 1024, `1 atan2 1`: math.Pi / 4,
		`1 == bool 1`: 1, `1 != bool 1`: 0, `1 > bool 0`: 1, `1 < bool 0`: 0, `1 >= bool 1`: 1, `2 <= bool 1`: 0, `1 + (time() > bool 0)`: math.NaN(), `time()`: math.NaN(),
	} {
		expr, err := testParser.ParseExpr(text)
		require.NoError(t, err)
		got, ok := Constant(expr)
		assert.Equal(t, !math.IsNaN(want), ok, text)
		if ok {
			assert.Equal(t, want, got, text)
		}
	}
	assert.Equal(t, `['-1e-300'::DOUBLE]`, newConst(-1e-300, Grid{}).list())
}
