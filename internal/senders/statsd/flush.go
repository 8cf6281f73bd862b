package statsd

import (
	"math"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// point is a sample that a flush writes.
type point struct {
	labels []series.Label
	key    []byte
	t      int64 // ms
	v      float64
	h      *histogram.Histogram
}

// Flush is what an aggregator has at a time. It can be written again and again.
type Flush struct {
	points   []point
	metadata []segment.Metadata
}

// Len is the number of samples.
func (f *Flush) Len() int { return len(f.points) }

var stale = math.Float64frombits(value.StaleNaN)

// Flush returns all series at the present time. Counters and timers go on; sets begin again. What
// is new began with 0 at the last flush, so that functions of PromQL count the first events too.
// Series without an event for the TTL end with a stale marker. A Flush that panics drops all series.
func (a *Aggregator) Flush() *Flush {
	a.mu.Lock()
	defer a.mu.Unlock()
	sound := false
	defer func() {
		if !sound {
			a.reset()
		}
	}()
	now := a.now()
	t := max(now.UnixMilli(), a.flushed+1)
	f := &Flush{}
	kept := a.order[:0]
	for _, x := range a.order {
		if a.settings.TTL > 0 && now.Sub(x.touched) > a.settings.TTL {
			for _, p := range x.points(t) {
				if p.v = stale; p.h != nil {
					p.h = &histogram.Histogram{Sum: stale}
				}
				f.points = append(f.points, p)
			}
			a.empty(x)
			delete(a.entries, remotewrite.View(x.key))
			a.give(x.bytes)
			a.series -= a.width(x.kind)
			metric := metricOf(x.labels)
			u := a.kinds[metric]
			if u.entries--; u.entries == 0 {
				delete(a.kinds, metric)
			}
			continue
		}
		kept = append(kept, x)
		for _, p := range x.points(t) {
			if x.fresh && x.cumulative(&p) {
				begin := p
				if begin.t, begin.v = a.flushed, 0; p.h != nil {
					begin.h = &histogram.Histogram{Schema: p.h.Schema, ZeroThreshold: p.h.ZeroThreshold} // before the first observation
				}
				f.points = append(f.points, begin)
			}
			f.points = append(f.points, p)
		}
		if x.fresh {
			f.metadata = append(f.metadata, segment.Metadata{Metric: metricOf(x.labels), Type: x.metricType(a.settings.Timers)})
		}
		x.fresh = false
		if x.kind == set {
			a.empty(x)
		}
	}
	clear(a.order[len(kept):])
	a.order, a.flushed, sound = kept, t, true
	return f
}

// cumulative reports whether a point of the entry counts from 0.
func (x *entry) cumulative(p *point) bool {
	return x.kind == counter || x.kind == observer && !slices.ContainsFunc(p.labels, func(l series.Label) bool { return l.Name == model.QuantileLabel })
}

func (x *entry) metricType(form Timers) string {
	switch {
	case x.kind == counter:
		return string(model.MetricTypeCounter)
	case x.kind == observer && form == Native:
		return string(model.MetricTypeHistogram)
	case x.kind == observer:
		return string(model.MetricTypeSummary)
	}
	return string(model.MetricTypeGauge)
}

// points are the samples of an entry at a time (ms).
func (x *entry) points(t int64) []point {
	own := point{labels: x.labels, key: x.key, t: t, v: x.value}
	switch x.kind {
	case set:
		own.v = float64(len(x.members))
	case observer:
		var m dto.Metric
		if err := x.timer.Write(&m); err != nil {
			return nil // Write fails for labels that are not valid UTF-8, of which there are none
		}
		if m.Histogram != nil {
			own.h = native(m.Histogram)
			break
		}
		out := []point{
			x.suffixed(t, "_sum", m.Summary.GetSampleSum()),
			x.suffixed(t, "_count", float64(m.Summary.GetSampleCount())),
		}
		for _, q := range m.Summary.GetQuantile() {
			own := series.Label{Name: model.QuantileLabel, Value: strconv.FormatFloat(q.GetQuantile(), 'g', -1, 64)}
			lset := remotewrite.Extend(slices.Clone(x.labels), []series.Label{own})
			series.SortLabels(lset)
			out = append(out, point{labels: lset, key: keyOf(lset), t: t, v: q.GetValue()})
		}
		return out
	}
	return []point{own}
}

// suffixed is a point of a series whose name has a suffix.
func (x *entry) suffixed(t int64, suffix string, v float64) point {
	lset := slices.Clone(x.labels)
	for i := range lset {
		if lset[i].Name == model.MetricNameLabel {
			lset[i].Value += suffix
		}
	}
	return point{labels: lset, key: keyOf(lset), t: t, v: v}
}

// keyOf returns the key of a label set.
func keyOf(lset []series.Label) []byte {
	key := []byte{remotewrite.KeysOfStatsD}
	for _, l := range lset {
		key = remotewrite.AppendKey(remotewrite.AppendKey(key, l.Name), l.Value)
	}
	return key
}

func metricOf(lset []series.Label) string {
	for _, l := range lset {
		if l.Name == model.MetricNameLabel {
			return l.Value
		}
	}
	return ""
}

// Batch returns the samples as a batch of the generation (see remotewrite.Collect).
func (f *Flush) Batch(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	return remotewrite.Collect(g, rules, room, func(c *remotewrite.Collector) error {
		for i := range f.points {
			if err := f.points[i].add(c); err != nil {
				return err
			}
		}
		for _, m := range f.metadata {
			if err := c.Metadata(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *point) add(c *remotewrite.Collector) error {
	if p.h == nil {
		c.Float(p.t, p.v)
	} else {
		if err := c.HistogramRoom(len(p.h.PositiveBuckets) + len(p.h.NegativeBuckets)); err != nil {
			return err
		}
		if err := c.Histogram(segment.Hist{T: p.t, H: p.h}); err != nil {
			return c.Reject(err, 1)
		}
	}
	return c.Of(p.key, func() ([]series.Label, error) { return p.labels, nil }, nil)
}

// Size is roughly the memory of the samples, in bytes.
func (f *Flush) Size() int64 {
	n := int64(0)
	for i := range f.points {
		if n += remotewrite.CostFloat; f.points[i].h != nil {
			n += remotewrite.CostHistogram + 8*int64(len(f.points[i].h.PositiveBuckets)+len(f.points[i].h.NegativeBuckets))
		}
	}
	return n
}
