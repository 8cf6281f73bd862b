package push

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// samples adds what was pushed, and the times of the group, to a collector.
func (c *Change) samples(to *remotewrite.Collector) error {
	if c.pushed != nil {
		for i := range c.pushed.samples {
			if err := c.add(to, &c.pushed.samples[i]); err != nil {
				return err
			}
		}
		for _, m := range c.pushed.described {
			if err := to.Metadata(m); err != nil {
				return err
			}
		}
	}
	if c.times.IsEmpty() {
		return nil
	}
	for name, ms := range map[string]int64{pushTime: c.Next.Pushed, failureTime: c.Next.Failed} {
		s := sample{series: Series{Labels: named(c.times, name)}, v: float64(ms) / 1000}
		if err := c.add(to, &s); err != nil {
			return err
		}
		if err := to.Metadata(segment.Metadata{Metric: name, Type: string(model.MetricTypeGauge), Help: help[name]}); err != nil {
			return err
		}
	}
	return nil
}

// add adds a sample at the time of the change.
func (c *Change) add(to *remotewrite.Collector, s *sample) error {
	t := c.Next.At
	if !s.series.Histogram {
		to.Float(t, s.v)
	} else {
		buckets := 0
		if s.h != nil {
			buckets = len(s.h.PositiveBuckets) + len(s.h.NegativeBuckets)
		} else if s.fh != nil {
			buckets = len(s.fh.PositiveBuckets) + len(s.fh.NegativeBuckets)
		}
		if err := to.HistogramRoom(buckets); err != nil {
			return err
		}
		if err := to.Histogram(s.hist(t)); err != nil {
			return to.Reject(err, 1)
		}
	}
	for _, e := range s.exemplars {
		if !e.HasTs {
			e.Ts = t
		}
		to.Exemplar(e)
	}
	return to.Of(append(to.Text(remotewrite.KeysOfPushes), s.series.Labels.Bytes(nil)...), func() (lset []series.Label, _ error) {
		s.series.Labels.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
		return lset, nil
	}, nil)
}
