package fleet

import (
	"math"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/tests/bench/capture"
)

// kind determines how a series continues after the end of the capture, and how hosts differ in it.
type kind uint8

const (
	// one value in the whole capture: every host has it as it is (flags, sizes, infos)
	constant kind = iota
	gauge         // begins again
	counter       // continues from the last value, so it never falls
	clock         // a time in seconds that follows the scrape's: keeps its distance from it
)

// clockSlack is how far, in seconds, a clock may be from the time of the scrape.
const clockSlack = 24 * 60 * 60

// shape is a captured series, ready to be replayed.
type shape struct {
	kind   kind
	grid   grid
	values []float64
	lap    float64 // counter: its increase in one pass through the capture
}

// shapeOf classifies a captured series by its name and its values.
func shapeOf(s capture.Series, times []int64) shape {
	sh := shape{kind: gauge, grid: gridOf(s.Values), values: s.Values}
	switch {
	case isConstant(s.Values):
		sh.kind = constant
	case isClock(s.Values, times):
		sh.kind = clock
	case isCounter(s.Labels.Get(model.MetricNameLabel), s.Values):
		sh.kind = counter
		n := len(s.Values)
		// The step from the last scrape to the next pass's first is the average step.
		sh.lap = (s.Values[n-1] - s.Values[0]) * float64(n) / float64(n-1)
	}
	return sh
}

// at returns the value at step n ≥ 0 (counted from the beginning of the capture and beyond its end)
// and time ts (ms) for the host and series of hash h.
func (s *shape) at(times []int64, h uint64, n int, ts int64) float64 {
	i := n % len(s.values)
	v := s.values[i]
	switch s.kind {
	case constant:
		return v
	case clock:
		return s.grid.round(v + float64(ts-times[i])/1000 + unit(h)/1000)
	case counter:
		v += float64(n/len(s.values)) * s.lap
	}
	return s.grid.round(v * (0.5 + unit(h)/2)) // between half and all of the captured value
}

func isConstant(v []float64) bool {
	for _, x := range v {
		if math.Float64bits(x) != math.Float64bits(v[0]) {
			return false
		}
	}
	return true
}

func isClock(v []float64, times []int64) bool {
	for i, x := range v {
		if !(math.Abs(x-float64(times[i])/1000) < clockSlack) {
			return false
		}
	}
	return true
}

// isCounter decides by the conventions for names, by node_exporter's two exceptions, and by the
// values, which must never fall.
func isCounter(name string, v []float64) bool {
	if !hasAny(name, strings.HasSuffix, "_total", "_count", "_sum", "_bucket") &&
		!hasAny(name, strings.HasPrefix, "node_vmstat_", "node_netstat_") {
		return false
	}
	for i := 1; i < len(v); i++ {
		if !(v[i] >= v[i-1]) {
			return false
		}
	}
	return true
}

func hasAny(name string, has func(s, part string) bool, parts ...string) bool {
	for _, p := range parts {
		if has(name, p) {
			return true
		}
	}
	return false
}
