package remotewrite

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/exemplar"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Batch is what one request or message adds: samples by reference into the label sets of one
// generation. One goroutine at a time uses it, and Release ends its use.
type Batch struct {
	Generation *Generation
	Floats     []Float
	Starts     []int64 // start timestamps (ms, 0 = unknown) aligned with Floats; nil if no sample has one
	Hists      []Hist
	Exemplars  []Exemplar
	Metadata   []segment.Metadata
	MinT, MaxT int64 // ms, over Floats, Hists and Exemplars

	Bytes    int64     // estimate of the memory that decoding took and that a flush will take
	Rejected int       // series that were refused, in whole or in part
	Err      error     // why the first of them was refused
	Offences []Offence // why the first Rules.Offences of them were refused

	lent bool // Floats is of floats
}

// Offence is why a part of a message was refused.
type Offence struct {
	Place int // of the part, as its decoder counts (Collector.Place); 0: unknown
	Err   error
}

// Float is a float sample of a series.
type Float struct {
	Ref series.Ref
	T   int64 // ms
	V   float64
}

// Hist is a native histogram sample of a series.
type Hist struct {
	Ref series.Ref
	segment.Hist
}

// Exemplar is an exemplar of a series.
type Exemplar struct {
	Ref series.Ref
	exemplar.Exemplar
}

// batches are spare batches, and floats spare memory of those that expect many samples, of which a
// process has few at a time.
var (
	batches = sync.Pool{New: func() any { return new(Batch) }}
	floats  = memory.NewPool(lentFloats, func(f []Float) int { return cap(f) })
)

const (
	lentFloats = 16
	manyFloats = 4 << 10 // from so many on, memory of floats is looked for
)

// A batch whose capacities exceed these is left to the garbage collector instead of the pool.
const (
	keepSamples = 64 << 10 // Floats
	keepOthers  = 4 << 10  // Hists, Exemplars, Metadata
)

// A batch that needs less than half of its capacity and leaves more than these unused is copied.
const (
	fitFloats = 1 << 10
	fitOthers = 256
)

// fit returns to the pool memory that is far more than the batch needs: a batch can wait for long.
func (b *Batch) fit() {
	if (b.lent || cap(b.Floats) <= 2*len(b.Floats)+fitFloats) && max(cap(b.Hists), cap(b.Exemplars), cap(b.Metadata)) <= fitOthers {
		return
	}
	pooled := Batch{Floats: b.Floats, Hists: b.Hists, Exemplars: b.Exemplars, Metadata: b.Metadata, lent: b.lent}
	b.lent = false
	b.Floats, b.Hists = slices.Clone(b.Floats), slices.Clone(b.Hists)
	b.Exemplars, b.Metadata = slices.Clone(b.Exemplars), slices.Clone(b.Metadata)
	pooled.Release()
}

// Release returns the batch to the pool. It must not be used afterwards.
func (b *Batch) Release() {
	if b.lent {
		if cap(b.Floats) <= keepSamples {
			floats.Put(b.Floats[:0])
		}
		b.Floats, b.lent = nil, false
	}
	if cap(b.Floats) > keepSamples || max(cap(b.Hists), cap(b.Exemplars), cap(b.Metadata)) > keepOthers {
		return
	}
	clear(b.Hists)
	clear(b.Exemplars)
	clear(b.Metadata)
	*b = Batch{Floats: b.Floats[:0], Hists: b.Hists[:0], Exemplars: b.Exemplars[:0], Metadata: b.Metadata[:0]}
	batches.Put(b)
}

// Tally counts what batches hold.
type Tally struct{ Floats, Hists, Exemplars int }

// TallyOf counts what the batches hold together.
func TallyOf(bs ...*Batch) (n Tally) {
	for _, b := range bs {
		n = n.Plus(Tally{len(b.Floats), len(b.Hists), len(b.Exemplars)})
	}
	return n
}

// Plus returns the sum of two tallies.
func (n Tally) Plus(m Tally) Tally {
	return Tally{n.Floats + m.Floats, n.Hists + m.Hists, n.Exemplars + m.Exemplars}
}

// Samples is the number of float and histogram samples.
func (n Tally) Samples() int { return n.Floats + n.Hists }

func (n Tally) String() string {
	return fmt.Sprintf("%d floats, %d histograms, %d exemplars", n.Floats, n.Hists, n.Exemplars)
}

// windows returns how many 2h windows the batch touches. Where that is at most limit, the answer
// may be an upper bound that is at most limit, too.
func (b *Batch) windows(limit int) int {
	if b.MinT > b.MaxT {
		return 0
	}
	first, last := key.WindowOf(b.MinT), key.WindowOf(b.MaxT)
	if n := int64(last-first)/key.WindowMillis + 1; n <= int64(limit) {
		return int(n)
	}
	return len(b.windowSet())
}

// windowSet returns the 2h windows that the batch touches.
func (b *Batch) windowSet() map[key.Window]struct{} {
	seen := map[key.Window]struct{}{}
	for _, f := range b.Floats {
		seen[key.WindowOf(f.T)] = struct{}{}
	}
	for _, h := range b.Hists {
		seen[key.WindowOf(h.T)] = struct{}{}
	}
	for _, e := range b.Exemplars {
		seen[key.WindowOf(e.Ts)] = struct{}{}
	}
	return seen
}

// See widens MinT and MaxT to a time (ms).
func (b *Batch) See(t int64) { b.MinT, b.MaxT = min(b.MinT, t), max(b.MaxT, t) }

// Mark is a position in a batch.
type Mark struct{ floats, hists, exemplars int }

// samples is the number of float and histogram samples between two marks.
func (m Mark) samples(to Mark) int { return to.floats - m.floats + to.hists - m.hists }

// Mark returns the end of the batch.
func (b *Batch) Mark() Mark { return Mark{len(b.Floats), len(b.Hists), len(b.Exemplars)} }

// Assign gives what lies between two marks to a series.
func (b *Batch) Assign(from, to Mark, ref series.Ref) {
	for i := from.floats; i < to.floats; i++ {
		b.Floats[i].Ref = ref
		b.See(b.Floats[i].T)
	}
	for i := from.hists; i < to.hists; i++ {
		b.Hists[i].Ref = ref
		b.See(b.Hists[i].T)
	}
	for i := from.exemplars; i < to.exemplars; i++ {
		b.Exemplars[i].Ref = ref
		b.See(b.Exemplars[i].Ts)
	}
}

// cut drops what follows a mark.
func (b *Batch) cut(m Mark) {
	b.Floats, b.Hists, b.Exemplars = b.Floats[:m.floats], b.Hists[:m.hists], b.Exemplars[:m.exemplars]
	if b.Starts != nil {
		b.Starts = b.Starts[:m.floats]
	}
}

// NoRef marks data of no known series: of a series that was refused, or is not yet resolved.
const NoRef = series.Ref(math.MaxUint32)

// sweep removes what is marked with NoRef, from MinT and MaxT too.
func (b *Batch) sweep() {
	b.MinT, b.MaxT = math.MaxInt64, math.MinInt64
	n := 0
	for i, f := range b.Floats {
		if f.Ref == NoRef {
			continue
		}
		b.See(f.T)
		b.Floats[n] = f
		if b.Starts != nil {
			b.Starts[n] = b.Starts[i]
		}
		n++
	}
	b.Floats = b.Floats[:n]
	if b.Starts != nil {
		b.Starts = b.Starts[:n]
	}
	b.Hists = slices.DeleteFunc(b.Hists, func(h Hist) bool { return h.Ref == NoRef })
	for _, h := range b.Hists {
		b.See(h.T)
	}
	b.Exemplars = slices.DeleteFunc(b.Exemplars, func(e Exemplar) bool { return e.Ref == NoRef })
	for _, e := range b.Exemplars {
		b.See(e.Ts)
	}
}

// Len is the number of items in a batch: its float samples, histograms, exemplars and metadata,
// numbered in this order.
func (b *Batch) Len() int {
	return len(b.Floats) + len(b.Hists) + len(b.Exemplars) + len(b.Metadata)
}

// Part is a batch of the items [from, to), whose memory it shares with b. It is not released.
func (b *Batch) Part(from, to int) Batch {
	out := Batch{Generation: b.Generation}
	out.Starts, _, _ = cutout(b.Starts, from, to)
	out.Floats, from, to = cutout(b.Floats, from, to)
	out.Hists, from, to = cutout(b.Hists, from, to)
	out.Exemplars, from, to = cutout(b.Exemplars, from, to)
	out.Metadata, _, _ = cutout(b.Metadata, from, to)
	return out
}

// cutout returns the part of s in [from, to), and both counted from the end of s.
func cutout[T any](s []T, from, to int) (in []T, fromRest, toRest int) {
	n := len(s)
	return s[min(max(from, 0), n):min(max(to, 0), n)], from - n, to - n
}

// Boundary returns where to cut [from, to): between two series, as near to at as possible, or at
// itself if there is one series only.
func (b *Batch) Boundary(from, to, at int) int {
	for up, down := at, at; up < to || down > from; up, down = up+1, down-1 {
		if up < to && up > from && b.owner(up) != b.owner(up-1) {
			return up
		}
		if down > from && down < to && b.owner(down) != b.owner(down-1) {
			return down
		}
	}
	return at
}

// owner identifies the series of an item, and the item's kind.
func (b *Batch) owner(i int) (o struct {
	ref  series.Ref
	kind int
}) {
	switch n, m := len(b.Floats), len(b.Floats)+len(b.Hists); {
	case i < n:
		o.ref = b.Floats[i].Ref
	case i < m:
		o.ref, o.kind = b.Hists[i-n].Ref, 1
	case i < m+len(b.Exemplars):
		o.ref, o.kind = b.Exemplars[i-m].Ref, 2
	default:
		o.ref, o.kind = series.Ref(i), 3
	}
	return o
}
