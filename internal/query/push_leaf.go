package query

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// slabValues is how many values a slab has.
const slabValues = 64 << 10

// slab is memory for the values of a leaf's series at the steps.
type slab [slabValues]float64

var slabs = sync.Pool{New: func() any { return new(slab) }}

// leafRows are the values of a leaf's series: those that have one at some step, by ordinal.
type leafRows struct {
	i       []uint32
	v       [][]float64
	samples int64 // that were read
	slabs   []*slab
	rest    []float64 // memory for more values, of undefined content
}

// release lets others have the memory of the values.
func (l *leafRows) release() {
	for _, s := range l.slabs {
		slabs.Put(s)
	}
	*l = leafRows{}
}

// room returns memory for the n values of a series, of undefined content. more is how many will be asked for, at least n.
func (l *leafRows) room(n, more int) []float64 {
	switch {
	case n <= len(l.rest):
	case n > slabValues || more < slabValues/2:
		l.rest = make([]float64, more)
	default:
		s := slabs.Get().(*slab)
		l.slabs, l.rest = append(l.slabs, s), s[:]
	}
	return l.rest[:n:n]
}

// leaf reads the samples of a leaf and evaluates its function as they come, series by series. The
// rows of a series lie together in every object: DuckDB, which does not know that, takes three times
// as long for its scan and GROUP BY alone. The function is the aggregate that the statement of
// explain names, so the values have the same bits. Several threads take batches of series.
func (r *runner) leaf(ctx context.Context, l *plan.Leaf) (out *leafRows, err error) {
	r.metrics.Pushed.WithLabelValues("leaves").Inc()
	read, err := r.readOf(ctx, l)
	if err != nil {
		return nil, err
	}
	release, err := r.prefetch(ctx, read)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	batches := read.batches()
	got := make([]leafRows, min(r.settings.threads, len(batches)))
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for w := range got {
		g.Go(func() error {
			k, err := promsql.NewKernel(read.rolled.Kernel(l.Func), fmt.Sprintf("%s budget=%d", l.Spec, r.budget.ID()))
			if err != nil {
				return err
			}
			defer k.Close()
			memory := samples.TakeMemory()
			defer memory.Release()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := r.batch(ctx, k, read, batches[i], memory, &got[w]); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out = &leafRows{}
	for i := range got {
		out.i, out.v, out.samples = append(out.i, got[i].i...), append(out.v, got[i].v...), out.samples+got[i].samples
		out.slabs = append(out.slabs, got[i].slabs...)
	}
	return out, nil
}

// batch reads some series, ordinals of the leaf, and evaluates them.
func (r *runner) batch(ctx context.Context, k *promsql.Kernel, read *sampleRead, ordinals []uint32, memory *samples.Memory, out *leafRows) error {
	some := make([]int, len(ordinals))
	for i, o := range ordinals {
		some[i] = read.wanted[o]
	}
	got := r.samples.CollectBatch(read.res.Match(some, read.whole.MinT, read.whole.MaxT), memory)
	if err := read.rolled.Read(ctx, got, some); err != nil {
		return err
	}
	out.samples += got.Held()
	r.metrics.Samples.Add(float64(got.Held()))
	n := k.Steps()
	for i, o := range ordinals {
		t, v, facts := got.Joined(i)
		if len(t) == 0 {
			continue
		}
		values := out.room(n, (len(ordinals)-i)*n)
		present, err := k.Eval(t, v, values, facts)
		if err != nil {
			return err
		}
		if present {
			out.i, out.v, out.rest = append(out.i, o), append(out.v, values), out.rest[n:]
		}
	}
	return nil
}

// holdValues checks that the values of leaves fit into the memory of the query, all of them at once.
func (p *pushing) holdValues(leaves []*plan.Leaf) error {
	need := valueBytes(leaves)
	if limit := p.settings.queryMemoryBytes; need > limit {
		return request.TooMuchMemory(limit, need)
	}
	return nil
}

// valueBytes is what the values of leaves take.
func valueBytes(leaves []*plan.Leaf) (n int64) {
	for _, l := range leaves {
		n += int64(len(l.Resolution.Series)) * int64(l.Spec.Grid.N) * bytesPerValue
	}
	return n
}
