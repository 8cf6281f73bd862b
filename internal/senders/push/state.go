package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Version is that of states in a store (schemas/push.md).
const Version = 1

// State is what the next push to a group must know. The zero value is that of a group that nobody
// has pushed to.
type State struct {
	Version  int                `json:"version"`
	ID       string             `json:"id"`     // random, of this state: no other has it
	Labels   map[string]string  `json:"labels"` // the grouping key
	At       int64              `json:"at"`     // ms, of the samples of the last change
	Pushed   int64              `json:"pushed"` // ms, of the last push that succeeded; 0: none since the group was deleted
	Failed   int64              `json:"failed"` // ms, of the last push that failed; 0: none
	Families map[string]Members `json:"families"`
}

// Members are the series of a metric family.
type Members struct {
	Floats     []labels.Labels `json:"floats,omitempty"`
	Histograms []labels.Labels `json:"histograms,omitempty"`
}

// Encode returns the state as it is stored, with a checksum.
func (s State) Encode() ([]byte, error) { return checksum.Marshal(s) }

// ErrVersion reports a state of another version of Promlake.
var ErrVersion = errors.New("another version of Promlake wrote the state of the group")

// Decode is the inverse of Encode. Errors: ErrVersion; others mean that the state is damaged.
func Decode(b []byte) (s State, err error) {
	if _, err := checksum.Verify(b); err != nil {
		return s, fmt.Errorf("decode state of a group: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("decode state of a group: %w", err)
	}
	if s.Version != Version {
		return s, fmt.Errorf("%w: it has version %d, want %d", ErrVersion, s.Version, Version)
	}
	return s, nil
}

// maxAhead is how far (ms) the clock of a writer may be behind the last change of a group so that
// the next change still comes after it.
const maxAhead = 60_000

// after returns the time of a change that is made now (ms). Changes of a group have ascending
// times, also when writers' clocks differ, so that a stale marker never hides a later sample.
func (s State) after(now int64) int64 {
	if now <= s.At && s.At-now < maxAhead {
		return s.At + 1
	}
	return now
}

// Change is what an operation on a group writes: samples and stale markers at one time, and the
// state that follows.
type Change struct {
	Next   State
	pushed *Metrics
	ended  []Series
	times  labels.Labels // of the series with the times of the group, without a name; empty: none
}

// Empty reports that there is nothing to write.
func (c *Change) Empty() bool { return c.Next.At == 0 }

// Push is a push at a time (ms). With whole it replaces all metrics of the group (PUT), else those
// with the names of pushed ones (POST). It returns *TooLarge if the group would get too large.
func (s State) Push(g Group, m *Metrics, whole bool, now int64, set Settings) (Change, error) {
	c := Change{Next: s.next(g, now), pushed: m, times: g.labels()}
	c.Next.Pushed = c.Next.At
	alive := map[string]bool{}
	for _, x := range m.samples {
		alive[string(x.series.Labels.Bytes(nil))] = true
		members := c.Next.Families[x.family]
		if x.series.Histogram {
			members.Histograms = append(members.Histograms, x.series.Labels)
		} else {
			members.Floats = append(members.Floats, x.series.Labels)
		}
		c.Next.Families[x.family] = members
	}
	total := len(m.samples)
	for _, name := range slices.Sorted(maps.Keys(s.Families)) {
		members := s.Families[name]
		if _, replaced := c.Next.Families[name]; !whole && !replaced {
			c.Next.Families[name] = members
			total += len(members.Floats) + len(members.Histograms)
			continue
		}
		for _, x := range members.series() {
			if !alive[string(x.Labels.Bytes(nil))] {
				c.ended = append(c.ended, x)
			}
		}
	}
	if total > set.MaxSeries {
		return Change{}, &TooLarge{LimitSeries, int64(set.MaxSeries), int64(total)}
	}
	return c, nil
}

// Fail is a push at a time (ms) that was refused. The metrics of the group stay.
func (s State) Fail(g Group, now int64) Change {
	c := Change{Next: s.next(g, now), times: g.labels()}
	c.Next.Failed = c.Next.At
	maps.Copy(c.Next.Families, s.Families)
	return c
}

// Delete ends all series of the group at a time (ms).
func (s State) Delete(g Group, now int64) Change {
	if s.Pushed == 0 && s.Failed == 0 {
		return Change{}
	}
	c := Change{Next: s.next(g, now)}
	c.Next.Pushed, c.Next.Failed = 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.Families)) {
		c.ended = append(c.ended, s.Families[name].series()...)
	}
	for _, name := range []string{failureTime, pushTime} {
		c.ended = append(c.ended, Series{Labels: named(g.labels(), name)})
	}
	return c
}

// next is the state without families after a change at a time (ms).
func (s State) next(g Group, now int64) State {
	s.Version, s.At, s.Families, s.Labels = Version, s.after(now), map[string]Members{}, map[string]string{}
	for _, l := range g {
		s.Labels[l.Name] = l.Value
	}
	return s
}

func (m Members) series() (out []Series) {
	for _, l := range m.Floats {
		out = append(out, Series{Labels: l})
	}
	for _, l := range m.Histograms {
		out = append(out, Series{Labels: l, Histogram: true})
	}
	return out
}

// labels are those of the group that have values.
func (g Group) labels() labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, l := range g {
		b.Set(l.Name, l.Value)
	}
	return b.Labels()
}

func named(l labels.Labels, name string) labels.Labels {
	return labels.NewBuilder(l).Set(model.MetricNameLabel, name).Labels()
}

// stale is the value of a stale marker.
var stale = math.Float64frombits(value.StaleNaN)

// hist returns a native histogram of a sample, or a stale marker.
func (x *sample) hist(t int64) segment.Hist {
	if x.h == nil && x.fh == nil {
		return segment.Hist{T: t, H: &histogram.Histogram{Sum: stale}}
	}
	return segment.Hist{T: t, H: x.h, FH: x.fh}
}

// Batch returns the samples of the change as a batch (see remotewrite.Collect). The room is that of
// an earlier step of the request. Pushed samples are refused as a whole: the batch has the offence
// then. Stale markers that break a rule are left out, since rules may have changed after their
// series were pushed.
func (c *Change) Batch(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
	b, err := remotewrite.Collect(g, rules, room, c.samples)
	if err != nil || b.Err != nil || len(c.ended) == 0 {
		return b, err
	}
	b.Release()
	rules.Discard = func(remotewrite.Reason, error, int) {}
	b, err = remotewrite.Collect(g, rules, room, func(to *remotewrite.Collector) error {
		if err := c.samples(to); err != nil {
			return err
		}
		// Add stale markers for the series that end.
		for _, x := range c.ended {
			if err := c.add(to, &sample{series: x, v: stale}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		b.Err, b.Rejected = nil, 0
	}
	return b, err
}

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
