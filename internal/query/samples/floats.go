package samples

import (
	"context"
	"sync"

	"github.com/promlake/promlake/internal/format/block"
)

// batch holds float samples of some series, one after the other.
type batch struct {
	t  []int64 // ms; nil if near is set
	v  []float64
	st []int64 // ms; nil = all unknown

	base int64    // ms
	near []uint16 // ms after base: the times, where each series has one sample

	clean bool // there are certainly no stale markers
}

// at returns the time (ms) of a sample.
func (b *batch) at(i uint32) int64 {
	if b.near != nil {
		return b.base + int64(b.near[i])
	}
	return b.t[i]
}

// times returns the times (ms) of the samples [from, to), which are those of one series. Callers
// must not change them.
func (b *batch) times(from, to uint32) []int64 {
	switch {
	case b.near == nil:
		return b.t[from:to:to]
	case from == to:
		return nil
	}
	return []int64{b.at(from)}
}

// fragment is n samples of one series in one object, ascending. In the batch their times begin at
// at, and their values at off. Of equal timestamps the larger rank wins.
type fragment struct {
	batch      *batch
	at, off, n uint32
	rank       uint32 // position of the object in the order of ranks
}

// first returns the time (ms) of the first sample, last that of the last one.
func (f *fragment) first() int64 { return f.batch.at(f.at) }
func (f *fragment) last() int64  { return f.batch.at(f.at + f.n - 1) }

// times returns the times (ms) of all samples.
func (f *fragment) times() []int64 { return f.batch.times(f.at, f.at+f.n) }

// sameTimes reports whether two fragments certainly have samples at the same times.
func (f *fragment) sameTimes(g *fragment) bool {
	if f.n != g.n || f.n == 0 {
		return false
	}
	if f.n == 1 {
		return f.first() == g.first()
	}
	return &f.batch.t[f.at] == &g.batch.t[g.at]
}

// floatReaders keeps decoders with their buffers.
var floatReaders = sync.Pool{New: func() any { return new(block.FloatReader) }}

// blockFloats reads the float samples in blocks.
func (r *Collector) blockFloats(ctx context.Context) error {
	p, err := r.planFloats(ctx)
	if err != nil {
		return err
	}
	got := make([][]fragment, len(p.groups)) // by row group and member
	err = r.run(ctx, p, func(i int, g *rowGroup) (err error) {
		got[i], err = r.groupFloats(ctx, g)
		return err
	})
	if err != nil {
		return err
	}
	for i := range p.groups {
		r.takeGroup(&p.groups[i], got[i])
	}
	return nil
}

// takeGroup takes the fragments of a row group, by member.
func (r *Collector) takeGroup(g *rowGroup, all []fragment) {
	for i, f := range all {
		if f.n > 0 {
			r.got[g.members[i].Series].take(f, &r.Deletions)
		}
	}
}

// groupFloats reads one row group.
func (r *Collector) groupFloats(ctx context.Context, g *rowGroup) ([]fragment, error) {
	if g.key != "" {
		return r.keptFloats(ctx, g)
	}
	fr := floatReaders.Get().(*block.FloatReader)
	defer floatReaders.Put(fr)
	if r.memory != nil {
		// Without start timestamps, into the memory of the batch. Series with equal times share
		// them.
		frame := r.frame(ctx, g)
		var total int64
		var err error
		if frame != nil {
			total, err = fr.SelectFramed(g.in, g.group, frame, g.rows, r.MinT, r.MaxT)
		} else {
			total, err = fr.Select(g.in, g.group, false, g.rows, r.MinT, r.MaxT)
		}
		if err != nil || total == 0 {
			return nil, err
		}
		if err := r.hold(total); err != nil {
			return nil, err
		}
		t, v := fr.AllTimes(), r.memory.values.take(int(total))
		if frame == nil { // else the frame keeps them
			t = r.memory.times.take(len(t))
			copy(t, fr.AllTimes())
		}
		stale, err := fr.Values(v)
		if err != nil {
			return nil, err
		}
		out, batches := make([]fragment, len(g.rows)), make([]batch, len(g.rows))
		for i, x := range fr.Rows() {
			from := fr.TimesAt(i)
			batches[i] = batch{t: t[from : from+int(x.N)], v: v[:x.N], clean: !stale}
			out[i] = fragment{&batches[i], 0, 0, uint32(x.N), uint32(g.object)}
			v = v[x.N:]
		}
		return out, nil
	}
	st := r.Objects[g.object].Footer.Meta.HasST
	total, err := fr.Select(g.in, g.group, st, g.rows, r.MinT, r.MaxT)
	if err != nil || total == 0 {
		return nil, err
	}
	if err := r.hold(total); err != nil {
		return nil, err
	}
	run := block.FloatRun{TS: make([]int64, 0, total), V: make([]float64, 0, total)}
	if st {
		run.ST = make([]int64, 0, total)
	}
	if err := fr.Read(&run); err != nil {
		return nil, err
	}
	b, off := &batch{t: run.TS, v: run.V, st: run.ST}, uint32(0)
	out := make([]fragment, len(g.rows))
	for i, x := range fr.Rows() {
		out[i] = fragment{b, off, off, uint32(x.N), uint32(g.object)}
		off += uint32(x.N)
	}
	return out, nil
}
