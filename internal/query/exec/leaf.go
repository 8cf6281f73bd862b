package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// Values are the values of a leaf's series: those that have one at some step, by ordinal.
type Values struct {
	I       []uint32
	v       [][]float64
	Samples int64 // that were read
	room
}

// rows returns the values as rows, ascending by ordinal.
func (l *Values) rows() []plan.Row {
	rows := make([]plan.Row, len(l.I))
	for k, i := range l.I {
		rows[k] = plan.Row{I: i, V: l.v[k]}
	}
	sortRows(rows)
	return rows
}

func sortRows(rows []plan.Row) {
	slices.SortFunc(rows, func(a, b plan.Row) int { return cmp.Compare(a.I, b.I) })
}

// Leaf reads the samples of a leaf and evaluates its function as they come, series by series. The
// rows of a series lie together in every object: DuckDB, which does not know that, takes three
// times as long for its scan and GROUP BY alone. The function is the aggregate that the statement
// of explain names, so the values have the same bits. Several threads take batches of series.
func (r *Run) Leaf(ctx context.Context, l *plan.Leaf) (out *Values, err error) {
	r.Metrics.Pushed.WithLabelValues("leaves").Inc()
	read, err := r.ReadOf(ctx, l)
	if err != nil {
		return nil, err
	}
	batches := read.Res.Batches(read.wanted, read.Whole.MinT, read.Whole.MaxT, func(series int) int64 {
		return read.Rolled.Estimate(read.Res, series, read.Whole.MinT, read.Whole.MaxT)
	})
	inPlace := len(batches) == 1 && read.Rolled == nil && r.Files.Local() // what is read is planned once
	if !inPlace {
		release, err := r.prefetch(ctx, read)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	got := make([]Values, min(r.Settings.Threads, len(batches)))
	var next atomic.Int64
	work := func(ctx context.Context, out *Values) error {
		k, err := promsql.NewKernel(read.Rolled.Kernel(l.Func), fmt.Sprintf("%s budget=%d", l.Spec, r.Budget.ID()))
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
			if err := r.batch(ctx, k, read, batches[i], inPlace, memory, out); err != nil {
				return err
			}
		}
	}
	if len(got) == 1 {
		err = work(ctx, &got[0])
	} else {
		g, ctx := errgroup.WithContext(ctx)
		for w := range got {
			g.Go(func() error { return work(ctx, &got[w]) })
		}
		err = g.Wait()
	}
	if err != nil {
		return nil, err
	}
	out = &Values{}
	for i := range got {
		out.I, out.v, out.Samples = append(out.I, got[i].I...), append(out.v, got[i].v...), out.Samples+got[i].Samples
		out.slabs = append(out.slabs, got[i].slabs...)
	}
	return out, nil
}

// batch reads the series of some ordinals of the leaf, and evaluates them. inPlace means that they
// are all, and that nobody has counted yet what is read.
func (r *Run) batch(ctx context.Context, k *promsql.Kernel, read *Input, ordinals []uint32, inPlace bool, memory *samples.Memory, out *Values) error {
	some, match, only := read.wanted, read.Whole.Match, len(ordinals) == len(read.wanted)
	if !only || read.Rolled != nil {
		some = make([]int, len(ordinals))
		for i, o := range ordinals {
			some[i] = read.wanted[o]
		}
		match = read.Res.Match(some, read.mint, read.maxt)
	} else { // the whole read is the batch
		slices.Sort(ordinals)
	}
	got := read.Whole
	if inPlace {
		got.Into(memory)
	} else {
		got = r.Samples.CollectBatch(match, memory, only)
	}
	if err := read.Rolled.Read(ctx, got, some); err != nil {
		return err
	}
	out.Samples += got.Held()
	r.Metrics.Samples.Add(float64(got.Held()))
	n := k.Steps()
	for i, o := range ordinals {
		t, v, facts := got.Joined(i)
		if len(t) == 0 {
			continue
		}
		values := out.next(n, (len(ordinals)-i)*n)
		present, err := k.Eval(t, v, values, facts)
		if err != nil {
			return err
		}
		if present {
			out.I, out.v = append(out.I, o), append(out.v, values)
			out.keep(n)
		}
	}
	return nil
}

// HoldValues checks that the values of leaves fit into the memory of the query, all of them at
// once.
func (p *Attempt) HoldValues(leaves []*plan.Leaf) error {
	need := valueBytes(leaves)
	if limit := p.Settings.QueryMemoryBytes; need > limit {
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
