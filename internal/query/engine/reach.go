package engine

import (
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// reach is how far from the times of a query the samples are that its selectors read. That of a
// settled expression depends on the lookback only.
type reach struct {
	lookback    time.Duration
	start, end  int64 // ms, after the first and the last time of the query
	noSelectors bool
}

func reachOf(expr parser.Expr, lookback time.Duration) reach {
	at := time.UnixMilli(1 << 50) // later than anything that a selector reaches back
	mint, maxt := promql.FindMinMaxTime(&parser.EvalStmt{Expr: expr, Start: at, End: at, LookbackDelta: lookback})
	if mint == 0 && maxt == 0 {
		return reach{lookback: lookback, noSelectors: true}
	}
	return reach{lookback: lookback, start: mint - at.UnixMilli(), end: maxt - at.UnixMilli()}
}

// times is promql.FindMinMaxTime of the query.
func (q *Query) times() (mint, maxt int64) {
	r := &q.expr.reach
	switch {
	case !q.expr.settled || q.asked.LookbackDelta != r.lookback:
		return promql.FindMinMaxTime(&q.asked)
	case r.noSelectors:
		return 0, 0
	}
	return timestamp.FromTime(q.asked.Start) + r.start, timestamp.FromTime(q.asked.End) + r.end
}
