package samples

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Kernel is the function that runs for a leaf's: count_over_time adds up the counts of the
// stand-ins, and 1 for each sample.
func (x *Rollups) Kernel(fn string) string {
	if x != nil && x.standIn == rollup.StandInCount {
		return "prom_sum_over_time"
	}
	return fn
}

// edge is a collector of the samples before or after the times of rollups.
func (r *Collector) edge(edges []*Collector, mint, maxt int64, object int, members []lookup.Row) []*Collector {
	i := slices.IndexFunc(edges, func(e *Collector) bool { return e.MinT == mint && e.MaxT == maxt })
	if i < 0 {
		m := *r.Match
		m.MinT, m.MaxT, m.Rows = mint, maxt, make([][]lookup.Row, len(r.Objects))
		i, edges = len(edges), append(edges, &Collector{Match: &m, reader: r.reader, got: r.got, inBatch: r.inBatch, counted: r.counted, memory: r.memory})
	}
	edges[i].Rows[object] = members
	return edges
}

// Split takes from a collector of series, which are positions in the resolution, the rows whose
// rollups are read, by object. edges collect their samples outside of the rollups' times.
func (x *Rollups) Split(r *Collector, series []int) (edges []*Collector, taken [][]lookup.Row) {
	taken = make([][]lookup.Row, len(r.Objects))
	for o := range x.blocks {
		b := &x.blocks[o]
		if b.file == nil {
			continue
		}
		var left []lookup.Row
		for _, m := range r.Rows[o] {
			if x.answers(series[m.Series], o) {
				taken[o] = append(taken[o], m)
			} else {
				left = append(left, m)
			}
		}
		r.Rows[o] = left
		f := r.Objects[o].Footer
		if len(taken[o]) > 0 && max(r.MinT, f.MinT) <= b.lo {
			edges = r.edge(edges, r.MinT, b.lo, o, taken[o])
		}
		if len(taken[o]) > 0 && min(r.MaxT, f.MaxT) > b.hi {
			edges = r.edge(edges, b.hi+1, r.MaxT, o, taken[o])
		}
	}
	return edges, taken
}

// Open opens the rollups of the taken rows, counts them, and returns what will be read of them.
func (x *Rollups) Open(ctx context.Context, r *Collector, taken [][]lookup.Row) (out []source.Parts, err error) {
	err = r.reader.files.Each(ctx, len(taken), func(ctx context.Context, o int) (err error) {
		if len(taken[o]) > 0 {
			b := &x.blocks[o]
			b.places, err = r.reader.Places(ctx, &r.Objects[o], r.Tables[o], b.file, b.step)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var t request.Totals
	for o := range taken {
		if len(taken[o]) == 0 {
			continue
		}
		b := &x.blocks[o]
		f := r.reader.files.Parts(ctx, r.Objects[o].Block.File(b.file.Name), b.file.Bytes)
		f.Spans = spansOf(b.places, taken[o], x.standIn)
		out = append(out, f)
		t.Bytes.Considered += b.file.Bytes
		for _, span := range f.Spans {
			t.Bytes.Read += span[1]
		}
		r.reader.metrics.Pushed.Rollups.Inc()
	}
	r.reader.metrics.Count(ctx, t)
	return out, nil
}

// Read collects the samples of series, which are positions in the resolution, and the stand-ins
// where rollups answer.
func (x *Rollups) Read(ctx context.Context, r *Collector, series []int) error {
	if x == nil {
		return r.ReadFloats(ctx)
	}
	edges, taken := x.Split(r, series)
	r.reserve()
	if err := r.segments(ctx); err != nil {
		return err
	}
	for _, e := range append(edges, r) {
		if err := e.blockFloats(ctx); err != nil {
			return err
		}
		if e != r {
			r.size.Add(e.size.Load())
		}
	}
	if x.standIn == rollup.StandInCount {
		for _, s := range r.got {
			// Each sample is a 1, a stale marker aside, in memory of the batch: lists of segments
			// are shared.
			for i, f := range s.floats {
				p := f.points()
				b := &batch{t: p.t, v: r.memory.values.take(len(p.v)), clean: f.batch.clean}
				for k, v := range p.v {
					if b.v[k] = 1; value.IsStaleNaN(v) {
						b.v[k] = v
					}
				}
				s.floats[i] = fragment{b, 0, 0, f.n, f.rank}
			}
		}
	}
	got := make([][]fragment, len(taken)) // by object and member
	err := r.reader.files.Each(ctx, len(taken), func(ctx context.Context, o int) (err error) {
		if len(taken[o]) > 0 {
			got[o], err = x.fragments(ctx, r, o, taken[o])
		}
		return err
	})
	if err != nil {
		return err
	}
	for o := range got {
		for i, f := range got[o] {
			if err := r.hold(int64(f.n)); err != nil {
				return err
			}
			if f.n > 0 {
				r.got[taken[o][i].Series].take(f, &r.Deletions)
			}
		}
	}
	return nil
}

// fragments returns the stand-ins of rows of an object, which ascend. They are copies, because row
// groups have those of many series.
func (x *Rollups) fragments(ctx context.Context, r *Collector, object int, members []lookup.Row) ([]fragment, error) {
	b, out := &x.blocks[object], make([]fragment, len(members))
	total := int64(0)
	for _, m := range members {
		from, end := b.places.Of(m.N)
		total += end - from
	}
	to := &batch{t: r.memory.times.take(int(total))[:0], v: r.memory.values.take(int(total))[:0], clean: true}
	open := -1
	var group *batch
	for i, m := range members {
		at := len(to.t)
		for from, end := b.places.Of(m.N); from < end; {
			g := b.places.Group(from)
			if g != open {
				var err error
				if group, err = r.reader.standIns(ctx, &r.Objects[object], b, g, x.standIn); err != nil {
					return nil, err
				}
				open, to.clean = g, to.clean && group.clean
			}
			first := b.places.First(g)
			n := min(end, b.places.First(g+1)) - from
			ts := group.t[from-first : from-first+n]
			lo, hi := between(ts, max(b.lo+1, r.MinT), min(b.hi, r.MaxT))
			to.t, to.v = append(to.t, ts[lo:hi]...), append(to.v, group.v[from-first : from-first+n][lo:hi]...)
			from += n
		}
		out[i] = fragment{to, uint32(at), uint32(at), uint32(len(to.t) - at), uint32(object)}
	}
	return out, nil
}

// spansOf are the byte ranges that are read of the row groups that have rows of some series.
func spansOf(p *Places, members []lookup.Row, s rollup.StandIn) (out [][2]int64) {
	last := -1
	for _, m := range members {
		from, end := p.Of(m.N)
		for ; from < end; from = p.First(last + 1) {
			if g := p.Group(from); g != last {
				last = g
				out = append(out, p.Spans(g, s)...)
			}
		}
	}
	return out
}

// standIns returns the stand-ins of a row group, from the cache or from the rollup.
func (s *Reader) standIns(ctx context.Context, o *source.Object, b *rollupPart, group int, of rollup.StandIn) (*batch, error) {
	key := o.Block.File(b.file.Name)
	got, hit, err := index.Get(ctx, s.cache, index.PartKey("stand-ins", key, fmt.Sprint(of, group)), func() (*batch, error) {
		in := s.files.Open(ctx, key, b.file.Bytes)
		err := in.Prefetch(b.places.Spans(group, of))
		out := &batch{}
		if err == nil {
			out.t, out.v, err = b.places.StandIns(in, group, of)
			out.clean = !slices.ContainsFunc(out.v, value.IsStaleNaN)
		}
		return out, errors.Join(err, in.Close())
	})
	s.metrics.CountLookup("rollup", hit)
	if err != nil {
		return nil, o.Broken(fmt.Errorf("read %s: %w", key, err))
	}
	return got, nil
}
