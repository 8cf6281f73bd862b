package appender

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

const (
	// maxLag is how far (ms) behind the newest sample of all series a sample may be: half of the
	// range of Prometheus' head block.
	maxLag = 3_600_000
	// forgetAfter is how far (ms) behind the newest sample the last sample of a series may be
	// before the series is forgotten.
	forgetAfter = 2 * 3_600_000
	// sweepEvery is the distance (ms) between two searches for series to forget.
	sweepEvery = 10 * 60_000
	// describeEvery is the period (ms) in which a target's metadata is read again: seldom, because a
	// process has copies of its texts for each target.
	describeEvery = 5 * 60_000
)

// order knows the last sample of each series that was appended to lately, by which it refuses
// samples as Prometheus does. It is safe for concurrent use.
type order struct {
	mu     sync.Mutex
	series table
	hists  map[*state]Histogram // the last samples that are no floats
	newest map[*state]newest    // the newest exemplar of each series that has any
	maxT   int64                // newest sample of all series
	window int64                // ms; see SetOutOfOrderWindow
	swept  int64                // maxT at the last sweep
}

// newest is the newest exemplar of a series, of which labels are no more than a hash.
type newest struct {
	t      int64 // ms
	v      float64
	labels uint64
	timed  bool // by the target
}

// newer returns what is the newest exemplar after e, and whether e is stored: if it does not equal
// n, and is not older by more than window (ms). Exemplars of one time are ordered by value and
// labels.
func (n newest) newer(e exemplar.Exemplar, window int64) (newest, bool) {
	x := newest{e.Ts, e.Value, e.Labels.Hash(), e.HasTs}
	if x.labels == n.labels && x.v == n.v && (x.t == n.t || !x.timed && !n.timed) {
		return n, false
	}
	if cmp.Or(cmp.Compare(x.t, n.t), cmp.Compare(x.v, n.v), cmp.Compare(x.labels, n.labels)) < 0 {
		return n, x.t < n.t && x.t > n.t-window
	}
	return x, true
}

// state is what is known of a series. The fields of its last sample are guarded by order.mu.
// Pointers come first: the collector reads an object up to the last of them, and what it reads is
// how much the heap may grow (memory.TuneCollector). There is one for each series, so it has no
// field that few of them need.
type state struct {
	labels labels.Labels
	memo   remotewrite.Memo
	t      int64   // of the last sample; before the first commit what maxT was when the series was new
	v      float64 // of the last sample
	ref    uint32
	has    bool // a last sample
	hist   bool // the last sample is in order.hists
}

// dropHistogram forgets the histograms of the last sample of a series. The caller holds o.mu.
func (o *order) dropHistogram(s *state) {
	s.hist = false
	delete(o.hists, s)
}

// admit completes a sample of the series with the labels ls, or returns upstream's error for one
// that is too old or out of order, or that differs from the committed sample of the same time. A
// stale marker becomes one of the series' kind.
func (o *order) admit(ref storage.SeriesRef, ls labels.Labels, x *Sample) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, err := o.find(ref, ls)
	if err != nil {
		return err
	}
	x.series = s
	if s.hist {
		asHistogram(x, o.hists[s])
	}
	if o.maxT == math.MinInt64 {
		o.maxT = x.T // the first sample of all counts before it is committed, as in Prometheus
	}
	return o.refusal(s, x)
}

// find returns the state of a series. A reference that is known no more, or that was given to
// another series, is ignored. The caller holds o.mu.
func (o *order) find(ref storage.SeriesRef, ls labels.Labels) (*state, error) {
	if ref < storage.SeriesRef(len(o.series.byRef)) {
		if s := o.series.byRef[ref]; s != nil && labels.Equal(s.labels, ls) {
			return s, nil
		}
	}
	ls = ls.WithoutEmpty()
	if ls.IsEmpty() {
		return nil, errors.New("empty labelset: invalid sample")
	}
	if name, dup := ls.HasDuplicateLabelNames(); dup {
		return nil, fmt.Errorf("label name %q is not unique: invalid sample", name)
	}
	s, at := o.series.find(ls)
	if s == nil {
		s = &state{labels: ls, t: o.maxT}
		o.series.add(s, at)
	}
	return s, nil
}

// refusal returns upstream's error for a sample of a series. The caller holds o.mu.
func (o *order) refusal(s *state, x *Sample) error {
	oldest := int64(math.MinInt64)
	if o.maxT > math.MinInt64+maxLag {
		oldest = o.maxT - maxLag
	}
	if o.window == 0 && x.T < oldest {
		return storage.ErrOutOfBounds
	}
	if x.T >= oldest {
		switch {
		case !s.has || x.T > s.t:
			return nil
		case x.T == s.t:
			return o.duplicate(s, x)
		}
	}
	if x.rare().inOrder {
		return storage.ErrOutOfOrderSample
	}
	switch {
	case o.window > 0 && x.T >= o.maxT-o.window:
		return nil
	case o.window > 0:
		return storage.ErrTooOldSample
	}
	return storage.ErrOutOfOrderSample
}

// duplicate returns nil if two samples of the same time are equal. The caller holds o.mu.
func (o *order) duplicate(s *state, x *Sample) error {
	last, h, same := o.hists[s], x.Histogram(), false
	switch {
	case h.H != nil:
		same = last.H != nil && h.H.Equals(last.H)
	case h.FH != nil:
		same = last.FH != nil && h.FH.Equals(last.FH)
	case s.hist:
		return storage.NewDuplicateHistogramToFloatErr(x.T, x.V)
	default:
		if math.Float64bits(x.V) == math.Float64bits(s.v) {
			return nil
		}
		return storage.NewDuplicateFloatErr(x.T, s.v, x.V)
	}
	if same {
		return nil
	}
	return storage.ErrDuplicateSampleForTimestamp
}

// commit makes the samples of a transaction the last of their series, and removes those that became
// out of order since they were appended. Exemplars that Prometheus does not store are removed: one
// that a target repeats, also without a timestamp at the time of each scrape, and one that is older
// than the newest of its series. It reports whether metadata is due: one of the series is
// new, or the last one has no sample yet in the current period of describeEvery.
func (o *order) commit(tx *Transaction) (due bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept, exemplars := 0, tx.Exemplars[:0:0]
	rest := tx.Exemplars
	for i := range tx.Samples {
		x := &tx.Samples[i]
		s := x.series
		own := rest
		for len(rest) > 0 && rest[0].Sample == i {
			rest = rest[1:]
		}
		own = own[:len(own)-len(rest)]
		if o.refusal(s, x) != nil {
			continue
		}
		due = due || !s.has || i == len(tx.Samples)-1 && x.T/describeEvery != s.t/describeEvery
		if !s.has || x.T > s.t {
			s.t, s.v, s.has = x.T, x.V, true
			switch h := x.Histogram(); {
			case h != (Histogram{}):
				s.hist, o.hists[s] = true, h
			case s.hist:
				o.dropHistogram(s)
			}
		}
		x.known = s.memo.Known()
		o.maxT = max(o.maxT, x.T)
		for _, e := range own {
			last, ok := o.newest[s]
			if !ok {
				last.t = math.MinInt64
			}
			var stored bool
			if o.newest[s], stored = last.newer(e.Exemplar, o.window); stored {
				e.HasTs = true // repeated ones are known here
				exemplars = append(exemplars, Exemplar{kept, e.Exemplar})
			}
		}
		if kept != i {
			tx.Samples[kept] = *x
		}
		kept++
	}
	tx.Samples, tx.Exemplars = tx.Samples[:kept], exemplars
	if o.maxT > math.MinInt64 && (o.swept == math.MinInt64 || o.maxT-o.swept >= sweepEvery) {
		// Forget series whose last sample is old.
		o.swept = o.maxT
		for _, s := range o.series.byRef {
			if s != nil && s.t < o.maxT-forgetAfter {
				if s.hist {
					o.dropHistogram(s)
				}
				delete(o.newest, s)
				o.series.remove(s)
			}
		}
	}
	return due
}
