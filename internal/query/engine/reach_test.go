package engine

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// TestReach: the range of time of a query is that of upstream's engine.
func TestReach(t *testing.T) {
	p := newRemembering(ParserOptions(), false, 5*time.Minute)
	for _, text := range []string{
		`1`, `time()`, `up`, `up offset 1h`, `up offset -1h`, `rate(up[7m] offset 30s) / up`, `up @ 100`, `sum(rate(up[5m]))[1h:1m]`,
		`rate(up[5m] anchored)`, `up smoothed`, `info(up)`, `info(up offset 1m, {a="b"})`, `rate(up[200y])`, `absent_over_time(up[1d])`,
	} {
		expr, err := p.parsed(text)
		require.NoError(t, err)
		for _, lookback := range []time.Duration{5 * time.Minute, time.Hour} {
			q := &Query{expr: expr, asked: parser.EvalStmt{Expr: expr.Expr, Start: time.UnixMilli(1_700_000_000_123), End: time.UnixMilli(1_700_001_000_456), LookbackDelta: lookback}}
			mint, maxt := promql.FindMinMaxTime(&q.asked)
			from, upto := q.times()
			require.Equal(t, []int64{mint, maxt}, []int64{from, upto}, text)
		}
	}
}

// TestTimersBegin: timers of a query that was closed measure the next one only.
func TestTimersBegin(t *testing.T) {
	x := spareTimers.Get().(*timers)
	text := x.String()
	for _, timing := range timings {
		x.GetTimer(timing).Start().Stop()
		require.Positive(t, x.GetTimer(timing).Duration(), timing)
	}
	x.release()
	require.Equal(t, text, x.String())
}
