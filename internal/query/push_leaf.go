package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/plan"
)

// leafRows are the values of a leaf's series: those that have one at some step, by ordinal.
type leafRows struct {
	i       []uint32
	v       [][]float64
	samples int64 // that were read
}

// batchSamples is the number of samples, about, that are read at a time, by each of the threads. Objects have the series in one order, so that the
// rows of neighbours lie together: what two batches share of a row group is read twice, and is the less the larger batches are.
const batchSamples = 1 << 20

// leaf reads the samples of a leaf and evaluates its function as they come, one series after the other. The rows of a series lie together in
// every object: DuckDB, which does not know that, takes three times as long for its scan and GROUP BY alone. The function is the aggregate's that the statement names, of which
// explain shows the text, and so are the bits.
func (r *runner) leaf(ctx context.Context, l *plan.Leaf) (out *leafRows, err error) {
	res, wanted, err := r.wanted(l)
	if err != nil {
		return nil, err
	}
	if err := r.holdValues(l); err != nil {
		return nil, err
	}
	r.stage.metrics.pushed.WithLabelValues("leaves").Inc()
	mint, maxt := l.Range()
	whole := res.reading(r.stage, wanted, max(mint, r.querier.mint), min(maxt, r.querier.maxt))
	release, err := whole.prefetch(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return r.evaluate(ctx, l, res, wanted, whole)
}

// holdValues checks that the values of a leaf fit into the memory of the query.
func (r *runner) holdValues(l *plan.Leaf) error {
	need := int64(len(l.Resolution.Series)) * int64(l.Spec.Grid.N) * bytesPerValue
	if limit := r.stage.settings.QueryMemoryBytes; need > limit {
		return &LimitError{Limit: "bytes of values in memory per query", Value: limit, Needed: need, Flag: memoryFlag}
	}
	return nil
}

// evaluate reads wanted, the positions of the leaf's series in res, in batches, several at a time.
func (r *runner) evaluate(ctx context.Context, l *plan.Leaf, res *resolution, wanted []int, whole *reading) (*leafRows, error) {
	batches := res.batches(wanted, whole.mint, whole.maxt)
	got := make([]leafRows, len(batches))
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(r.stage.settings.Threads, len(batches)) {
		g.Go(func() (err error) {
			k, err := promsql.NewKernel(l.Func, fmt.Sprintf("%s budget=%d", l.Spec, r.budget.ID()))
			if err != nil {
				return err
			}
			defer k.Close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(batches) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := r.batch(ctx, k, res, wanted, batches[i], whole, &got[i]); err != nil {
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
	}
	return out, nil
}

// batch reads some series, ordinals of the leaf, and evaluates them.
func (r *runner) batch(ctx context.Context, k *promsql.Kernel, res *resolution, wanted []int, ordinals []uint32, whole *reading, out *leafRows) error {
	some := make([]int, len(ordinals))
	for i, o := range ordinals {
		some[i] = wanted[o]
	}
	rd := res.reading(r.stage, some, whole.mint, whole.maxt)
	rd.batch = true
	if err := rd.segments(ctx); err != nil {
		return err
	}
	if err := rd.blockFloats(ctx); err != nil {
		return err
	}
	out.samples += rd.size.Load()
	r.stage.metrics.samples.Add(float64(rd.size.Load()))
	n := k.Steps()
	values := make([]float64, len(ordinals)*n)
	for i, o := range ordinals {
		if len(rd.series[i].floats) == 0 {
			continue
		}
		p := rd.series[i].merge(rd.mint, rd.unread)
		rd.series[i].floats = nil
		present, err := k.Eval(p.t, p.v, values[:n])
		if err != nil {
			return err
		}
		if present {
			out.i, out.v = append(out.i, o), append(out.v, values[:n:n])
			values = values[n:]
		}
	}
	return nil
}

// reading returns a reading of the series of a resolution at the given positions, whose series are parallel to them.
func (res *resolution) reading(s *Stage, wanted []int, mint, maxt int64) *reading {
	m := &matched{
		selection: selection{objs: res.objs, unread: res.unread},
		resolver:  resolver{settings: &s.settings, deletions: &res.deletions, series: make([]*memSeries, len(wanted)), members: make([][]member, len(res.objs))},
		mint:      mint, maxt: maxt, tables: res.tables, deletions: res.deletions,
	}
	backing := make([]memSeries, len(wanted))
	for i, w := range wanted {
		x := &res.series[w]
		backing[i] = memSeries{labels: x.labels, tombs: x.tombs}
		m.series[i] = &backing[i]
		for _, p := range x.at {
			m.members[p.object] = append(m.members[p.object], member{int32(i), int32(p.row)})
		}
	}
	for _, ms := range m.members {
		slices.SortFunc(ms, func(a, b member) int { return cmp.Compare(a.row, b.row) })
	}
	return &reading{matched: m, stage: s}
}

// batches divides series into batches of about batchSamples in [mint, maxt] (ms), of neighbours in the objects. Their elements are positions in wanted.
func (res *resolution) batches(wanted []int, mint, maxt int64) [][]uint32 {
	order := make([]uint32, len(wanted))
	places := make([]int64, len(wanted))
	main := res.largest()
	for i, w := range wanted {
		order[i], places[i] = uint32(i), res.series[w].place(main)
	}
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b)) })
	var out [][]uint32
	var samples int64
	from := 0
	for i, o := range order {
		samples += res.estimate(wanted[o], mint, maxt)
		if samples >= batchSamples {
			out = append(out, order[from:i+1])
			from, samples = i+1, 0
		}
	}
	if from < len(order) {
		out = append(out, order[from:])
	}
	return out
}

// estimate is about how many samples a series has in [mint, maxt] (ms).
func (res *resolution) estimate(series int, mint, maxt int64) (n int64) {
	for _, p := range res.series[series].at {
		f := res.objs[p.object].footer
		span := max(1, f.MaxT-f.MinT)
		n += int64(float64(p.n) * float64(max(0, min(maxt, f.MaxT)-max(mint, f.MinT))) / float64(span))
	}
	return n
}

// prefetch makes what the reading takes of blocks local, all at once, and counts it. It stays local until the returned function is called.
func (r *reading) prefetch(ctx context.Context) (release func() error, err error) {
	p := r.plan(ctx, floatFiles, r.mint, (*index.Table).Floats)
	release = func() (err error) {
		for _, f := range p.files {
			err = errors.Join(err, f.in.Close())
		}
		return err
	}
	r.stage.count(ctx, p.took)
	err = r.stage.files.each(ctx, len(p.files), func(_ context.Context, i int) error { return p.files[i].in.prefetch(p.files[i].spans) })
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// rows returns the values as rows of a result.
func (l *leafRows) rows() []plan.Row {
	out := make([]plan.Row, len(l.i))
	for k, i := range l.i {
		out[k] = plan.Row{I: i, V: l.v[k]}
	}
	return out
}
