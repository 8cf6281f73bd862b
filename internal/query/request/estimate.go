package request

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/prometheus/prometheus/util/stats"
)

// Estimate is what a query takes before it runs.
type Estimate struct {
	SeriesTouched int64 `json:"seriesTouched"` // of all selectors; a series of two counts twice
	SamplesRead   int64 `json:"samplesRead"`   // in the units of Prometheus' engine: a histogram counts as several
	Bytes         int64 `json:"bytes"`         // of samples, cached or not
	Requests      int64 `json:"requests"`      // to the store
	// FunctionMilliseconds is the time of a query function with the stack's default memory.
	FunctionMilliseconds float64 `json:"functionMilliseconds"`
	Dollars              float64 `json:"dollars"` // for the requests and the function
}

// Add adds what another query takes.
func (e *Estimate) Add(o Estimate) {
	e.SeriesTouched, e.SamplesRead, e.Bytes, e.Requests = e.SeriesTouched+o.SeriesTouched, e.SamplesRead+o.SamplesRead, e.Bytes+o.Bytes, e.Requests+o.Requests
	e.FunctionMilliseconds, e.Dollars = e.FunctionMilliseconds+o.FunctionMilliseconds, e.Dollars+o.Dollars
}

// CostLimits bound the estimates of queries. 0 means no limit. The tags are those of package
// settings.
type CostLimits struct {
	Series  int64   `name:"query.max-series-touched" default:"0" min:"0" help:"Series that all selectors of one query may touch together, by its estimate. The parameter max_series may lower it. 0 means no limit." when:"Set it to refuse queries over very many series before they read samples."`
	Samples int64   `name:"query.max-samples-read" default:"0" min:"0" help:"Samples that one query may read, by its estimate. The parameter max_samples_read may lower it. 0 means no limit." when:"Set it to refuse long queries before they read samples."`
	Dollars float64 `name:"query.max-dollars" default:"0" min:"0" help:"List price of the requests and the function time of one query, by its estimate, in US dollars. The parameter max_dollars may lower it. 0 means no limit." when:"Set it to bound what one query costs."`
}

// Within returns the lower of the limits of l and of ceilings.
func (l CostLimits) Within(ceilings CostLimits) CostLimits {
	return CostLimits{Series: lower(l.Series, ceilings.Series), Samples: lower(l.Samples, ceilings.Samples), Dollars: lower(l.Dollars, ceilings.Dollars)}
}

func lower[N int64 | float64](a, b N) N {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Within returns a *LimitError if the estimate exceeds a limit.
func (e *Estimate) Within(l CostLimits) error {
	refused := func(limit string, value, needed int64, flag, upstream string) error {
		return &LimitError{Limit: limit, Value: value, Needed: needed, Details: "at most, by its estimate", Flag: flag, Cost: true, Cause: errors.New(upstream + " in query execution")}
	}
	const micro = 1e6
	switch {
	case l.Series > 0 && e.SeriesTouched > l.Series:
		return refused("series per query (max_series)", l.Series, e.SeriesTouched, "--query.max-series-touched", "query would load too many series into memory")
	case l.Samples > 0 && e.SamplesRead > l.Samples:
		return refused("samples read per query (max_samples_read)", l.Samples, e.SamplesRead, "--query.max-samples-read", "query would read too many samples")
	case l.Dollars > 0 && e.Dollars > l.Dollars:
		return refused("millionths of a dollar per query (max_dollars)", int64(l.Dollars*micro), int64(math.Ceil(e.Dollars*micro)), "--query.max-dollars", "query would cost too much")
	}
	return nil
}

// Quote is what a query was expected to take, and what it took. It is safe for concurrent use.
// Accept, Touch and Again may be called on nil.
type Quote struct {
	estimated       atomic.Pointer[Estimate]
	series, samples atomic.Int64
}

// Accept notes the estimate, and fails with a *LimitError if that exceeds a limit.
func (q *Quote) Accept(e Estimate, l CostLimits) error {
	if q != nil {
		q.estimated.Store(&e)
	}
	return e.Within(l)
}

// Touch counts series and samples that were read outside of upstream's engine. Negative samples are
// those that the engine has counted and that are not in the store.
func (q *Quote) Touch(series, samples int) {
	if q != nil {
		q.series.Add(int64(series))
		q.samples.Add(int64(samples))
	}
}

// Again forgets what was read, for a query that is evaluated again.
func (q *Quote) Again() {
	if q != nil {
		q.series.Store(0)
		q.samples.Store(0)
	}
}

// Comparison is the estimate of a query beside what it took.
type Comparison struct {
	Estimated Estimate `json:"estimated"`
	Actual    Actual   `json:"actual"`
}

// Actual is what a query took, in the units of Estimate.
type Actual struct {
	SeriesTouched int64 `json:"seriesTouched"`
	SamplesRead   int64 `json:"samplesRead"`
	PeakSamples   int64 `json:"peakSamples,omitempty"` // that upstream's engine held at once
}

// Compare returns the comparison for ctx's query, which has statistics of the engine. nil: it is
// not asked for, or the query has no estimate.
func Compare(ctx context.Context, s *stats.Statistics) *Comparison {
	q := From(ctx).Quote
	if q == nil || q.estimated.Load() == nil {
		return nil
	}
	return &Comparison{Estimated: *q.estimated.Load(), Actual: Actual{
		SeriesTouched: q.series.Load(), SamplesRead: s.Samples.SamplesRead + q.samples.Load(), PeakSamples: int64(s.Samples.PeakSamples),
	}}
}
