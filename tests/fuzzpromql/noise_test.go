package fuzzpromql

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// plainly is a storage that does not change matchers: upstream's sorts the matchers of the query,
// and absent() depends on their order.
type plainly struct{ storage.Queryable }

func (p plainly) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := p.Queryable.Querier(mint, maxt)
	return plainQuerier{q}, err
}

type plainQuerier struct{ storage.Querier }

func (q plainQuerier) Select(ctx context.Context, sort bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	return q.Querier.Select(ctx, sort, hints, slices.Clone(ms)...)
}

// noisy is a storage that returns series in another order, and changes the last bits of samples
// that are not integers.
type noisy struct {
	storage.Queryable
	seed uint64
}

func (n noisy) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := n.Queryable.Querier(mint, maxt)
	return noisyQuerier{q, rand.New(rand.NewPCG(n.seed, 9))}, err
}

type noisyQuerier struct {
	storage.Querier
	rng *rand.Rand
}

func (q noisyQuerier) Select(ctx context.Context, sort bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := q.Querier.Select(ctx, sort, hints, ms...)
	s := &shuffled{at: -1}
	for set.Next() {
		s.series = append(s.series, noisySeries{set.At(), q.rng.Uint64()})
	}
	s.err, s.notes = set.Err(), set.Warnings()
	q.rng.Shuffle(len(s.series), func(i, j int) { s.series[i], s.series[j] = s.series[j], s.series[i] })
	return s
}

type shuffled struct {
	series []storage.Series
	at     int
	err    error
	notes  annotations.Annotations
}

func (s *shuffled) Next() bool {
	s.at++
	return s.at < len(s.series)
}
func (s *shuffled) At() storage.Series                { return s.series[s.at] }
func (s *shuffled) Err() error                        { return s.err }
func (s *shuffled) Warnings() annotations.Annotations { return s.notes }

type noisySeries struct {
	storage.Series
	seed uint64
}

func (s noisySeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	if own, ok := it.(noisyIterator); ok {
		it = own.Iterator
	}
	return noisyIterator{s.Series.Iterator(it), s.seed}
}

type noisyIterator struct {
	chunkenc.Iterator
	seed uint64
}

func (it noisyIterator) At() (int64, float64) {
	t, v := it.Iterator.At()
	if v == math.Trunc(v) || math.IsNaN(v) {
		return t, v
	}
	// the same sample always has the same noise
	switch (it.seed ^ uint64(t)*0x9e3779b97f4a7c15) >> 32 % 3 {
	case 0:
		return t, math.Nextafter(v, math.Inf(1))
	case 1:
		return t, math.Nextafter(v, math.Inf(-1))
	}
	return t, v
}
