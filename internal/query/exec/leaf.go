package exec

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/value"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// Values are the values of a leaf's series, or of the groups of its fold: those that have one at
// some step, by ordinal.
type Values struct {
	I       []uint32
	v       [][]float64
	present []uint32 // ordinals of the series that have a value
	Samples int64    // that were read
	quoted
	room
}

// quoted counts what a leaf reads as Prometheus' engine would.
type quoted struct {
	to *request.Quote // nil: nobody asks for it
	of *plan.Leaf
}

// touch counts a series with samples at t, and its values: of a selector one sample at each time
// that has a value, of a range the samples in the windows.
func (q quoted) touch(t []int64, values []float64) {
	if q.to == nil {
		return
	}
	n, spec := len(t), &q.of.Spec
	switch {
	case q.of.Selector.Range == 0:
		n = 0
		for _, v := range values {
			if !value.IsStaleNaN(v) {
				n++
			}
		}
	case spec.Window < spec.Grid.Step: // there are samples between the windows
		n = 0
		for _, at := range t {
			// after is the time from the end of the last window before the sample.
			if after := at - (spec.Grid.Start - spec.Offset - spec.Grid.Step); (after-1)%spec.Grid.Step >= spec.Grid.Step-spec.Window {
				n++
			}
		}
	}
	q.to.Touch(1, n)
}

// rows returns the values as rows, ascending by ordinal.
func (l *Values) rows() []vector.Row {
	rows := make([]vector.Row, len(l.I))
	for k, i := range l.I {
		rows[k] = vector.Row{I: i, V: l.v[k]}
	}
	vector.Sort(rows)
	return rows
}

// Leaf reads the samples of a leaf of a subtree and evaluates its function as they come, series by
// series. The rows of a series lie together in every object: DuckDB, which does not know that,
// takes three times as long for its scan and GROUP BY alone. The function is the aggregate that the
// statement of explain names, so the values have the same bits. Several threads take batches of
// series as they get free. For a fold each adds up fixed batches, so that the order of additions,
// and so the answer, is the same each time.
func (r *Run) Leaf(ctx context.Context, s *plan.Pushed, l *plan.Leaf) (out *Values, err error) {
	r.Metrics.Pushed.Leaves.Inc()
	read, err := r.ReadOf(ctx, l)
	if err != nil {
		return nil, err
	}
	batches := read.batches()
	inPlace := len(batches) == 1 && read.Rolled == nil && r.Files.Local() // what is read is planned once
	if !inPlace && read.Whole != nil {
		release, err := r.prefetch(ctx, read)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	threads, fold := make([]evaluation, min(r.Settings.Threads, len(batches))), s.Fold(l)
	defer func() {
		for w := range threads {
			threads[w].close()
		}
	}()
	var taken atomic.Int64
	work := func(ctx context.Context, w int) error {
		e := &threads[w]
		e.quoted = quoted{request.From(ctx).Quote, l}
		if err := e.open(r, read, l, fold); err != nil {
			return err
		}
		for n := 0; ; n++ {
			i := w + n*len(threads)
			if fold == nil {
				i = int(taken.Add(1)) - 1
			}
			if i >= len(batches) {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := e.batch(ctx, batches[i], inPlace); err != nil {
				return err
			}
		}
	}
	if len(threads) == 1 {
		err = work(ctx, 0)
	} else {
		g, ctx := errgroup.WithContext(ctx)
		for w := range threads {
			g.Go(telemetry.Guard(func() error { return work(ctx, w) }))
		}
		err = g.Wait()
	}
	if err != nil {
		return nil, err
	}
	return joined(threads, fold)
}

// batches divides the series of a read into those that are read at a time.
func (s *Input) batches() [][]uint32 {
	if s.Rolled == nil && s.Res.Small() && len(s.wanted) > 0 {
		all := make([]uint32, len(s.wanted))
		for i := range all {
			all[i] = uint32(i)
		}
		return [][]uint32{all}
	}
	mint, maxt := s.times()
	return s.Res.Batches(s.wanted, mint, maxt, func(series int) int64 { return s.Rolled.Estimate(s.Res, series, mint, maxt) })
}

// joined returns the values of all threads.
func joined(threads []evaluation, fold *plan.Fold) (*Values, error) {
	if len(threads) == 1 && fold == nil {
		out := &threads[0].Values
		out.present = out.I
		return out, nil
	}
	out := &Values{}
	for w := range threads {
		e := &threads[w]
		out.I, out.v, out.Samples = append(out.I, e.I...), append(out.v, e.v...), out.Samples+e.Samples
		out.present, out.slabs = append(out.present, e.present...), append(out.slabs, e.slabs...)
		if w > 0 && fold != nil {
			if err := threads[0].fold.Join(e.fold); err != nil {
				return nil, err
			}
		}
	}
	if fold == nil {
		out.present = out.I
		return out, nil
	}
	if len(threads) == 0 {
		return out, nil
	}
	n := threads[0].kernel.Steps()
	for g := range fold.N {
		values := out.next(n, (fold.N-g)*n)
		present, err := threads[0].fold.Result(uint32(g), values)
		if err != nil {
			return nil, err
		}
		if present {
			out.I, out.v = append(out.I, uint32(g)), append(out.v, values)
			out.keep(n)
		}
	}
	return out, nil
}

// evaluation is what one thread does of a leaf: it evaluates some of the series.
type evaluation struct {
	*Run
	Values
	read   *Input
	kernel *promsql.Kernel
	memory *samples.Memory

	fold   *promsql.Fold // nil: the values are held
	groups []uint32      // by ordinal
}

func (e *evaluation) open(r *Run, read *Input, l *plan.Leaf, fold *plan.Fold) (err error) {
	e.Run, e.read = r, read
	spec := append(l.Spec.Append(make([]byte, 0, 192)), " budget="...)
	e.kernel, err = promsql.NewKernel(read.Rolled.Kernel(l.Func), string(strconv.AppendInt(spec, int64(r.Budget.ID()), 10)))
	if err == nil && fold != nil {
		e.groups = fold.To
		e.fold, err = promsql.NewFold(fold.Op, fold.N, e.kernel.Steps(), r.Budget)
	}
	if read.Whole != nil {
		e.memory = samples.TakeMemory()
	}
	return err
}

func (e *evaluation) close() {
	if e.kernel != nil {
		e.kernel.Close()
	}
	if e.fold != nil {
		e.fold.Close()
	}
	if e.memory != nil {
		e.memory.Release()
	}
}

// batch reads the series of some ordinals of the leaf, and evaluates them. inPlace means that they
// are all, and that nobody has counted yet what is read.
func (e *evaluation) batch(ctx context.Context, ordinals []uint32, inPlace bool) error {
	read := e.read
	if read.Whole == nil {
		return e.head(ordinals)
	}
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
		got.Into(e.memory)
	} else {
		got = e.Run.Samples.CollectBatch(match, e.memory, only)
	}
	if err := read.Rolled.Read(ctx, got, some); err != nil {
		return err
	}
	e.count(got.Held())
	for i, o := range ordinals {
		t, v, facts := got.Joined(i)
		if len(t) == 0 {
			continue
		}
		if err := e.series(o, t, v, facts, len(ordinals)-i); err != nil {
			return err
		}
	}
	return nil
}

// head evaluates series that have their samples.
func (e *evaluation) head(ordinals []uint32) error {
	var last []int64 // times of the series before
	count := 0
	for i, o := range ordinals {
		h := e.read.Res.Series[e.read.wanted[o]].Head
		t, v := h.Between(e.read.mint, e.read.maxt)
		if len(t) == 0 {
			continue
		}
		var facts promsql.Facts
		if !h.Stale {
			facts |= promsql.NoStale
		}
		if len(t) == len(last) && &t[0] == &last[0] { // neighbours share equal times
			facts |= promsql.SameTimes
		}
		last, count = t, count+len(t)
		if err := e.series(o, t, v, facts, len(ordinals)-i); err != nil {
			return err
		}
	}
	e.count(int64(count))
	return nil
}

// count counts samples that were read.
func (e *evaluation) count(n int64) {
	e.Values.Samples += n
	e.Metrics.Samples.Add(float64(n))
}

// series evaluates the samples of the series of an ordinal, of which its batch has at most left
// more, this one included. It holds the values, or adds them to the fold.
func (e *evaluation) series(ordinal uint32, t []int64, v []float64, facts promsql.Facts, left int) error {
	n := e.kernel.Steps()
	more := n * left
	if e.fold != nil { // the next series has the same memory
		more = n
	}
	values := e.next(n, more)
	present, err := e.kernel.Eval(t, v, values, facts)
	e.touch(t, values)
	switch {
	case err != nil || !present:
		return err
	case e.fold != nil:
		e.present = append(e.present, ordinal)
		return e.fold.Add(e.groups[ordinal], values)
	}
	e.I, e.v = append(e.I, ordinal), append(e.v, values)
	e.keep(n)
	return nil
}

// HoldValues checks that the values of a subtree's leaves fit into the memory of the query, all of
// them at once.
func (p *Attempt) HoldValues(s *plan.Pushed) error {
	need := valueBytes(s)
	if limit := p.Settings.QueryMemoryBytes; need > limit {
		return request.TooMuchMemory(limit, need)
	}
	return nil
}

// valueBytes is what the values of a subtree's leaves take.
func valueBytes(s *plan.Pushed) (n int64) {
	for _, l := range s.Leaves {
		n += s.Held(l) * bytesPerValue
	}
	return n
}
