package ruleeval

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/promlake/promlake/internal/prom/appender"
)

// Memory holds what rules have written. It is written by one goroutine; reads may be concurrent
// once that is done.
type Memory struct {
	limit, bytes int64
	advice       string
	byHash       map[uint64][]*memSeries
	byName       map[string][]*memSeries
	full         error
}

// memSeries is a series with its samples, which ascend.
type memSeries struct {
	labels  labels.Labels
	samples []Sample
}

// Sample is a float, or a histogram if H is set.
type Sample struct {
	T int64 // ms
	V float64
	H *histogram.FloatHistogram
}

// NewMemory returns an empty Memory that refuses samples beyond limit bytes, about, with an advice.
func NewMemory(limit int64, advice string) *Memory {
	return &Memory{limit: limit, advice: advice, byHash: map[uint64][]*memSeries{}, byName: map[string][]*memSeries{}}
}

const (
	seriesBytes = 200 // of a series, without its labels
	bucketBytes = 8
	sampleBytes = int64(unsafe.Sizeof(Sample{})) * 3 / 2 // with the room that slices have to grow
)

// Add adds a transaction of an appendable.
func (m *Memory) Add(tx *appender.Transaction) error {
	for i := range tx.Samples {
		x := &tx.Samples[i]
		s := m.series(x.Labels())
		one := Sample{T: x.T, V: x.V, H: x.Histogram().FH}
		if one.H != nil && one.H.CounterResetHint == histogram.NotCounterReset {
			// The hint is about the samples that the rule has read, not about those that it writes.
			one.H = one.H.Copy()
			one.H.CounterResetHint = histogram.UnknownCounterReset
		}
		m.bytes += sampleBytes
		if one.H != nil {
			m.bytes += int64(unsafe.Sizeof(*one.H)) + bucketBytes*int64(len(one.H.PositiveBuckets)+len(one.H.NegativeBuckets)+len(one.H.PositiveSpans)+len(one.H.NegativeSpans))
		}
		if n := len(s.samples); n == 0 || s.samples[n-1].T < x.T { // an equal sample of the same time is not kept twice
			s.samples = append(s.samples, one)
		}
	}
	if m.bytes > m.limit {
		m.full = fmt.Errorf("the results of the rules need more than %d bytes: %s", m.limit, m.advice)
		return m.full
	}
	return nil
}

// series returns the series of a label set, which it makes.
func (m *Memory) series(ls labels.Labels) *memSeries {
	h := ls.Hash()
	for _, s := range m.byHash[h] {
		if labels.Equal(s.labels, ls) {
			return s
		}
	}
	s := &memSeries{labels: ls}
	m.byHash[h] = append(m.byHash[h], s)
	name := ls.Get(model.MetricNameLabel)
	m.byName[name] = append(m.byName[name], s)
	m.bytes += seriesBytes + int64(ls.ByteSize())
	return s
}

// Bytes is about the memory of the samples.
func (m *Memory) Bytes() int64 { return m.bytes }

// MayHave reports whether a series may match, by its name.
func (m *Memory) MayHave(ms []*labels.Matcher) bool {
	for name := range m.byName {
		if !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(name) }) {
			return true
		}
	}
	return false
}

// Each calls visit with each series that has samples in [from, to) (ms), and with these.
func (m *Memory) Each(from, to int64, visit func(ls labels.Labels, samples []Sample) error) error {
	for _, all := range m.byHash {
		for _, s := range all {
			if part := s.between(from, to-1); len(part) > 0 {
				if err := visit(s.labels, part); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Count returns the number of samples in [from, to) (ms).
func (m *Memory) Count(from, to int64) (n int64) {
	for _, all := range m.byHash {
		for _, s := range all {
			n += int64(len(s.between(from, to-1)))
		}
	}
	return n
}

// between returns the samples in [mint, maxt].
func (s *memSeries) between(mint, maxt int64) []Sample {
	at := sort.Search(len(s.samples), func(i int) bool { return s.samples[i].T >= mint })
	end := at + sort.Search(len(s.samples)-at, func(i int) bool { return s.samples[at+i].T > maxt })
	return s.samples[at:end]
}

// Querier implements storage.Queryable.
func (m *Memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return &memQuerier{storage.NoopQuerier(), m, mint, maxt}, nil
}

// memQuerier reads the samples in [mint, maxt]. No evaluation asks for labels.
type memQuerier struct {
	storage.Querier
	m          *Memory
	mint, maxt int64
}

// Select implements storage.Querier. The series are always sorted.
func (q *memQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for name, all := range q.m.byName {
		if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(name) }) {
			continue
		}
		for _, s := range all {
			part := s.between(q.mint, q.maxt)
			if len(part) == 0 || slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				continue
			}
			found = append(found, &memSeries{s.labels, part})
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return NewSeriesSet(found)
}

// Labels implements storage.Series.
func (s *memSeries) Labels() labels.Labels { return s.labels }

// Iterator implements storage.Series.
func (s *memSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(memSamples(s.samples))
}

// memSamples implements storage.Samples.
type memSamples []Sample

func (s memSamples) Len() int                { return len(s) }
func (s memSamples) Get(i int) chunks.Sample { return memSample{&s[i]} }

// memSample implements chunks.Sample. Rules write neither histograms of integers nor start
// timestamps. Readers own the histograms that they get.
type memSample struct{ of *Sample }

func (s memSample) T() int64                      { return s.of.T }
func (s memSample) F() float64                    { return s.of.V }
func (memSample) ST() int64                       { return 0 }
func (memSample) H() *histogram.Histogram         { return nil }
func (s memSample) FH() *histogram.FloatHistogram { return s.of.H.Copy() }
func (s memSample) Copy() chunks.Sample           { return s }
func (s memSample) Type() chunkenc.ValueType {
	if s.of.H != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// SeriesSet is a set of series in memory.
type SeriesSet struct {
	storage.SeriesSet
	at   storage.Series
	rest []storage.Series
}

// NewSeriesSet returns the set of some series, in their order.
func NewSeriesSet(series []storage.Series) *SeriesSet {
	return &SeriesSet{SeriesSet: storage.EmptySeriesSet(), rest: series}
}

// Next implements storage.SeriesSet.
func (s *SeriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.at, s.rest = s.rest[0], s.rest[1:]
	return true
}

// At implements storage.SeriesSet.
func (s *SeriesSet) At() storage.Series { return s.at }
