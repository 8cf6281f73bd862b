package importapp

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/base/ask"
)

// estimate is about how many samples a server has: at some times, how many series.
type estimate struct {
	points   []point // ascending; none: unknown
	interval float64 // ms between two samples of a series
	err      error   // why it is unknown
}

type point struct {
	at     int64 // ms
	series float64
}

const (
	// probes is the number of times at which series are counted.
	probes = 10
	// usualInterval is that between samples, in ms, unless the series up shows another one.
	usualInterval = 60_000
	// maxAnswer bounds the answer of a query, bytes.
	maxAnswer = 1 << 20
	// estimateTimeout bounds a query. What is imported does not depend on it.
	estimateTimeout = 30 * time.Second
)

// estimate asks the server's query API.
func (s *server) estimate(ctx context.Context, first, last int64) (e estimate) {
	step := max(1000, (last-first)/probes)
	counts := map[int64]float64{}
	for _, match := range s.Match {
		values, err := s.query(ctx, "/api/v1/query_range", url.Values{
			"query": {"count(" + match + ")"}, "start": {ask.Seconds(first)}, "end": {ask.Seconds(last)}, "step": {ask.Seconds(step)},
		})
		if err != nil {
			return estimate{err: err}
		}
		for at, v := range values {
			counts[at] += v
		}
	}
	e.interval = usualInterval
	const span = 600_000
	values, err := s.query(ctx, "/api/v1/query", url.Values{"query": {"avg(count_over_time(up[10m]))"}, "time": {ask.Seconds(last)}})
	for _, v := range values {
		if err == nil && v > 0 {
			e.interval = span / v
		}
	}
	for at := first; at <= last; at += step {
		e.points = append(e.points, point{at, counts[at]})
	}
	return e
}

// query asks a query whose answer has one series at most, and returns its values by time in ms.
func (s *server) query(ctx context.Context, path string, form url.Values) (map[int64]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	var answer struct {
		Data struct {
			Result []struct {
				Value  model.SamplePair
				Values []model.SamplePair
			}
		}
	}
	if err := ask.PostJSON(ctx, s.http, s.base+path, form, maxAnswer, &answer); err != nil {
		return nil, fmt.Errorf("ask for the number of series: %w", err)
	}
	out := map[int64]float64{}
	for _, r := range answer.Data.Result {
		for _, v := range append(r.Values, r.Value) {
			if v.Timestamp > 0 {
				out[int64(v.Timestamp)] = float64(v.Value)
			}
		}
	}
	return out, nil
}

// samples returns about how many samples there are in [from, to], ms.
func (e *estimate) samples(from, to int64) int64 {
	for i := len(e.points) - 1; i >= 0; i-- {
		if p := e.points[i]; p.at <= from || i == 0 {
			return int64(p.series * float64(to-from+1) / e.interval)
		}
	}
	return 0
}

// most returns the largest number of series.
func (e *estimate) most() (n int64) {
	for _, p := range e.points {
		n = max(n, int64(p.series))
	}
	return n
}
