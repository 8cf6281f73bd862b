package query

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

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

// add adds the values of a series, in the memory that room returned.
func (l *leafRows) add(ordinal uint32, v []float64) {
	l.i, l.v, l.rest = append(l.i, ordinal), append(l.v, v), l.rest[len(v):]
}

// leaf reads the samples of a leaf and evaluates its function as they come, one series after the other. The rows of a series lie together in
// every object: DuckDB, which does not know that, takes three times as long for its scan and GROUP BY alone. The function is the aggregate's that the statement names, of which
// explain shows the text, and so are the bits.
func (r *runner) leaf(ctx context.Context, l *plan.Leaf) (out *leafRows, err error) {
	r.stage.metrics.Pushed.WithLabelValues("leaves").Inc()
	read, err := r.readOf(ctx, l)
	if err != nil {
		return nil, err
	}
	release, err := read.prefetch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return r.evaluate(ctx, l, read.res, read.wanted, read.whole)
}

// holdValues checks that the values of leaves fit into the memory of the query, all of them at once.
func (p *pushing) holdValues(leaves []*plan.Leaf) error {
	need := valueBytes(leaves)
	if limit := p.stage.settings.QueryMemoryBytes; need > limit {
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

// evaluate reads wanted, the positions of the leaf's series in res, in batches, several at a time.
func (r *runner) evaluate(ctx context.Context, l *plan.Leaf, res *lookup.Resolution, wanted []int, whole *reading) (*leafRows, error) {
	batches := batches(res, wanted, whole)
	got := make([]leafRows, min(r.stage.settings.Threads, len(batches)))
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for w := range got {
		g.Go(func() (err error) {
			k, err := promsql.NewKernel(whole.rolled.kernel(l.Func), fmt.Sprintf("%s budget=%d", l.Spec, r.budget.ID()))
			if err != nil {
				return err
			}
			defer k.Close()
			memory := batchMemories.Get().(*batchMemory)
			defer memory.release()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := r.batch(ctx, k, res, wanted, batches[i], whole, memory, &got[w]); err != nil {
					return err
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := &leafRows{}
	for i := range got {
		out.i, out.v, out.samples = append(out.i, got[i].i...), append(out.v, got[i].v...), out.samples+got[i].samples
		out.slabs = append(out.slabs, got[i].slabs...)
	}
	return out, nil
}

// batch reads some series, ordinals of the leaf, and evaluates them.
func (r *runner) batch(ctx context.Context, k *promsql.Kernel, res *lookup.Resolution, wanted []int, ordinals []uint32, whole *reading, memory *batchMemory, out *leafRows) error {
	some := make([]int, len(ordinals))
	for i, o := range ordinals {
		some[i] = wanted[o]
	}
	rd := newReading(r.stage, res.Match(some, whole.MinT, whole.MaxT))
	memory.reset()
	rd.batch, rd.memory = true, memory
	if err := whole.rolled.read(ctx, rd, some); err != nil {
		return err
	}
	out.samples += rd.size.Load()
	r.stage.metrics.Samples.Add(float64(rd.size.Load()))
	n := k.Steps()
	for i, o := range ordinals {
		x := rd.got[i]
		if len(x.floats) == 0 {
			continue
		}
		p, facts := memory.join(x)
		values := out.room(n, (len(ordinals)-i)*n)
		present, err := k.Eval(p.t, p.v, values, facts)
		if err != nil {
			return err
		}
		if present {
			out.add(o, values)
		}
	}
	return nil
}

// rows returns the values as rows of a result.
func (l *leafRows) rows() []plan.Row {
	out := make([]plan.Row, len(l.i))
	for k, i := range l.i {
		out[k] = plan.Row{I: i, V: l.v[k]}
	}
	return out
}
