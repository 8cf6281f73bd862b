package ingest

import (
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// batch is what one request adds: samples by reference into the label sets of one generation.
type batch struct {
	gen       *generation
	floats    []floatSample
	starts    []int64 // start timestamps (ms, 0 = unknown) aligned with floats; nil if no sample has one
	hists     []histSample
	exemplars []exemplarSample
	metadata  []segment.Metadata
	minT      int64 // over floats, hists and exemplars
	maxT      int64

	charge *charge // for the memory of the batch and of what a flush makes of it; nil: nobody counts it

	rejected int   // series that were refused, in whole or in part
	err      error // why the first of them was
}

type floatSample struct {
	ref series.Ref
	t   int64 // ms
	v   float64
}

type histSample struct {
	ref series.Ref
	segment.Hist
}

type exemplarSample struct {
	ref series.Ref
	exemplar.Exemplar
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func newBatch(g *generation) *batch {
	b := batches.Get().(*batch)
	b.gen, b.minT, b.maxT = g, math.MaxInt64, math.MinInt64
	return b
}

// A batch whose capacities exceed these is left to the garbage collector instead of being kept for reuse.
const (
	keepSamples = 64 << 10 // floats
	keepOthers  = 4 << 10  // hists, exemplars, metadata
)

// fit leaves memory to the pool that is far more than the batch needs: a batch can wait for long.
func (b *batch) fit() {
	if cap(b.floats) <= 2*len(b.floats)+fitFloats && max(cap(b.hists), cap(b.exemplars), cap(b.metadata)) <= fitOthers {
		return
	}
	pooled := batch{floats: b.floats, hists: b.hists, exemplars: b.exemplars, metadata: b.metadata}
	b.floats, b.hists, b.exemplars, b.metadata = slices.Clone(b.floats), slices.Clone(b.hists), slices.Clone(b.exemplars), slices.Clone(b.metadata)
	pooled.release()
}

const (
	fitFloats = 1 << 10
	fitOthers = 256
)

// release gives the batch and what it is charged for back. Nobody may touch it afterwards.
func (b *batch) release() {
	if b.charge != nil {
		b.charge.release()
		b.charge = nil
	}
	if cap(b.floats) > keepSamples || max(cap(b.hists), cap(b.exemplars), cap(b.metadata)) > keepOthers {
		return
	}
	clear(b.hists)
	clear(b.exemplars)
	clear(b.metadata)
	*b = batch{floats: b.floats[:0], hists: b.hists[:0], exemplars: b.exemplars[:0], metadata: b.metadata[:0]}
	batches.Put(b)
}

func (b *batch) samples() int { return len(b.floats) + len(b.hists) }

func (b *batch) empty() bool {
	return len(b.floats)+len(b.hists)+len(b.exemplars)+len(b.metadata) == 0
}

// windows returns how many 2h windows the batch touches, or an upper bound of that if it is at most limit.
func (b *batch) windows(limit int) int {
	if b.minT > b.maxT {
		return 0
	}
	first, last := key.WindowOf(b.minT), key.WindowOf(b.maxT)
	if n := int64(last-first)/key.WindowMillis + 1; n <= int64(limit) {
		return int(n)
	}
	seen := map[key.Window]struct{}{}
	for _, f := range b.floats {
		seen[key.WindowOf(f.t)] = struct{}{}
	}
	for _, h := range b.hists {
		seen[key.WindowOf(h.T)] = struct{}{}
	}
	for _, e := range b.exemplars {
		seen[key.WindowOf(e.Ts)] = struct{}{}
	}
	return len(seen)
}

func (b *batch) see(t int64) { b.minT, b.maxT = min(b.minT, t), max(b.maxT, t) }

// reject notes that a series was refused, wholly or in part.
func (b *batch) reject(err error) {
	b.rejected++
	if b.err == nil {
		b.err = err
	}
}

// addFloat appends a float sample whose series is set later.
func (b *batch) addFloat(t int64, v float64, st int64) {
	b.floats = append(b.floats, floatSample{t: t, v: v})
	if st != 0 && b.starts == nil {
		b.starts = make([]int64, len(b.floats)-1, cap(b.floats))
	}
	if b.starts != nil {
		b.starts = append(b.starts, st)
	}
}

// mark is a position in a batch, from which on it can be assigned to a series or cut.
type mark struct{ floats, hists, exemplars int }

func (b *batch) mark() mark { return mark{len(b.floats), len(b.hists), len(b.exemplars)} }

// assign gives what lies between two marks to a series.
func (b *batch) assign(from, to mark, ref series.Ref) {
	for i := from.floats; i < to.floats; i++ {
		b.floats[i].ref = ref
		b.see(b.floats[i].t)
	}
	for i := from.hists; i < to.hists; i++ {
		b.hists[i].ref = ref
		b.see(b.hists[i].T)
	}
	for i := from.exemplars; i < to.exemplars; i++ {
		b.exemplars[i].ref = ref
		b.see(b.exemplars[i].Ts)
	}
}

// cut drops what lies behind a mark.
func (b *batch) cut(m mark) {
	b.floats, b.hists, b.exemplars = b.floats[:m.floats], b.hists[:m.hists], b.exemplars[:m.exemplars]
	if b.starts != nil {
		b.starts = b.starts[:m.floats]
	}
}

// noRef marks what belongs to a refused series until sweep removes it.
const noRef = series.Ref(math.MaxUint32)

// sweep removes what was assigned to noRef.
func (b *batch) sweep() {
	n := 0
	for i, f := range b.floats {
		if f.ref == noRef {
			continue
		}
		b.floats[n] = f
		if b.starts != nil {
			b.starts[n] = b.starts[i]
		}
		n++
	}
	b.floats = b.floats[:n]
	if b.starts != nil {
		b.starts = b.starts[:n]
	}
	b.hists = deleteRefused(b.hists, func(h *histSample) series.Ref { return h.ref })
	b.exemplars = deleteRefused(b.exemplars, func(e *exemplarSample) series.Ref { return e.ref })
}

func deleteRefused[T any](s []T, ref func(*T) series.Ref) []T {
	n := 0
	for i := range s {
		if ref(&s[i]) != noRef {
			s[n] = s[i]
			n++
		}
	}
	clear(s[n:])
	return s[:n]
}
