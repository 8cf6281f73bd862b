package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
)

const (
	interval        = 15 * time.Second // between two samples of a series
	historyInterval = time.Minute      // the same of the long history
	historySeries   = 20
	perInstance     = 100 // series of m that one instance has
	dataSeed        = 7
)

// bounds are the upper bounds of the buckets of a histogram.
var bounds = []string{"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "+Inf"}

// generator generates the samples of one series in order; every run generates the same ones.
type generator struct {
	labels   []prompb.Label
	first    int64 // ms
	interval int64 // ms
	next     func() float64
}

// take returns the next samples of the series before t (ms), in buf's memory.
func (g *generator) take(t int64, buf []prompb.Sample) []prompb.Sample {
	buf = buf[:0]
	for ; g.first < t; g.first += g.interval {
		buf = append(buf, prompb.Sample{Timestamp: g.first, Value: g.next()})
	}
	return buf
}

// series returns the generators of the main data. Each instance is scraped at its own millisecond,
// which is never that of a query's step: versions of Prometheus differ in whether a range includes
// a sample at its very beginning.
func (s scale) series() []*generator {
	var all []*generator
	add := func(instance int, next func(*rand.Rand) func() float64, lset ...string) {
		rng := rand.New(rand.NewPCG(dataSeed, uint64(len(all))))
		lset = append(lset, "instance", fmt.Sprintf("host-%03d:9100", instance), "job", "bench")
		all = append(all, &generator{
			labels: sorted(lset), first: start.UnixMilli() + 1 + int64(instance)*7919%(interval.Milliseconds()-2),
			interval: interval.Milliseconds(), next: next(rng),
		})
	}
	for i := range s.Series {
		values := counter(100)
		if i%4 == 3 {
			values = seconds
		}
		add(i/perInstance, values, model.MetricNameLabel, "m", "g", label("g", i%10), "dc", label("dc", i/10%10), "n", strconv.Itoa(i%perInstance))
	}
	for i := range max(1, s.Series/10) {
		for _, name := range []string{"a", "b"} {
			add(i/perInstance, counter(1000), model.MetricNameLabel, name, "g", label("g", i%10), "n", strconv.Itoa(i%perInstance))
		}
	}
	for i := range max(1, s.Series/10/len(bounds)) {
		for k, le := range bounds {
			// Every bucket counts at least as much as the one below it, because they share the
			// seed.
			add(i/perInstance, func(*rand.Rand) func() float64 { return bucket(uint64(i), k) },
				model.MetricNameLabel, "h_bucket", "le", le, "n", strconv.Itoa(i%perInstance))
		}
	}
	return all
}

// history returns the generators of the long history.
func (s scale) history() []*generator {
	var all []*generator
	for i := range historySeries {
		rng := rand.New(rand.NewPCG(dataSeed, 1<<40|uint64(i)))
		all = append(all, &generator{
			labels: sorted([]string{model.MetricNameLabel, "l", "n", strconv.Itoa(i), "job", "bench"}),
			first:  s.end().Add(-s.History).UnixMilli() + 1 + int64(i)*613, interval: historyInterval.Milliseconds(), next: walk(rng),
		})
	}
	return all
}

func label(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// sorted returns names and values as labels in order of their names.
func sorted(pairs []string) []prompb.Label {
	var ls []prompb.Label
	for i := 0; i < len(pairs); i += 2 {
		ls = append(ls, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	slices.SortFunc(ls, func(a, b prompb.Label) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return ls
}

// counter counts events, at most most between two samples, and sometimes resets to zero.
func counter(most int) func(*rand.Rand) func() float64 {
	return func(rng *rand.Rand) func() float64 {
		v := rng.IntN(1e6)
		return func() float64 {
			if v += rng.IntN(most); rng.IntN(5000) == 0 {
				v = 0
			}
			return float64(v)
		}
	}
}

// seconds sums times in hundredths, like processor seconds.
func seconds(rng *rand.Rand) func() float64 {
	v := rng.IntN(1e7)
	return func() float64 {
		v += rng.IntN(1500)
		return float64(v) / 100
	}
}

// bucket counts the observations of histogram i that are not greater than its bound k.
func bucket(i uint64, k int) func() float64 {
	rng := rand.New(rand.NewPCG(dataSeed, 1<<41|i))
	var v int
	return func() float64 {
		for b := range len(bounds) {
			if n := rng.IntN(20); b <= k {
				v += n
			}
		}
		return float64(v)
	}
}

// walk is a gauge with three decimal places.
func walk(rng *rand.Rand) func() float64 {
	v := 50.0
	return func() float64 {
		v = math.Round((v+rng.Float64()-0.5)*1000) / 1000
		return v
	}
}
