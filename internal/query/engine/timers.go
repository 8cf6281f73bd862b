package engine

import (
	"sync"

	"github.com/prometheus/prometheus/util/stats"
)

// timings are the parts of a query that this package measures, in the order in which they begin.
var timings = [...]stats.QueryTiming{stats.ExecTotalTime, stats.ExecQueueTime, stats.QueryPreparationTime, stats.InnerEvalTime, stats.ResultSortTime}

// timers are those of one query after the other.
type timers struct {
	*stats.QueryTimers
	of [len(timings)]*stats.Timer // by timing
	as [len(timings)]stats.Timer  // as they were at first
}

var spareTimers = sync.Pool{New: func() any {
	t := &timers{QueryTimers: stats.NewQueryTimers()}
	for i, timing := range timings {
		t.of[i] = t.GetTimer(timing)
		t.as[i] = *t.of[i]
	}
	return t
}}

// release lets others have the timers.
func (t *timers) release() {
	for i, x := range t.of {
		*x = t.as[i]
	}
	spareTimers.Put(t)
}
