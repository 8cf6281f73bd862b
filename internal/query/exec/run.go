package exec

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
	"github.com/promlake/promlake/internal/query/request"
)

// shrinkStep is how much smaller parts become when they did not fit, and maxShrink how much before
// a query has too little memory.
const (
	shrinkStep = 4
	maxShrink  = shrinkStep * shrinkStep
)

// Evaluate evaluates the pushed subtrees of a plan and returns their results, by subtree. It
// refuses a query that cannot be afforded. From a remote store it first fetches what the query
// reads, the engine's selectors included. A query that exceeds its memory is tried again in smaller
// parts, because the samples of a part are only estimated.
func (p *Attempt) Evaluate(ctx context.Context, pl *plan.Plan, planned *plan.Query) (results []*Result, err error) {
	if !p.Files.Local() {
		p.reads, p.raw = map[*plan.Leaf]*Input{}, nil
		for _, s := range pl.Pushed {
			for _, l := range s.Leaves {
				if p.reads[l], err = p.ReadOf(ctx, l); err != nil {
					return nil, err
				}
				p.reads[l].PlanFiles(ctx)
			}
		}
		for _, sel := range Kept(pl, planned) {
			p.raw = append(p.raw, p.RawReadOf(ctx, sel, p.Resolution(sel.Expr)))
		}
	}
	if err := p.afford(ctx, pl, planned); err != nil {
		return nil, err
	}
	release, err := p.ahead(ctx, pl)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	quote := request.From(ctx).Quote
	if quote.Again(); len(pl.Pushed) == 0 {
		return nil, nil
	}
	for shrink := int64(1); ; shrink *= shrinkStep {
		results = make([]*Result, len(pl.Pushed))
		quote.Again()
		err = p.Budgeted(ctx, shrink, func(r *Run) error {
			for i, s := range pl.Pushed {
				if results[i], err = r.subtree(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
		var limit *request.LimitError
		if err == nil || shrink == maxShrink || !errors.As(err, &limit) || limit.Flag != request.MemoryFlag {
			return results, err
		}
	}
}

// Budgeted calls fn with a Run whose memory is that of one query. Its error names the limit that a
// statement exceeded.
func (p *Attempt) Budgeted(ctx context.Context, shrink int64, fn func(*Run) error) (err error) {
	r := &Run{Attempt: p, Budget: promsql.NewBudget(p.Settings.QueryMemoryBytes), shrink: shrink}
	stop := context.AfterFunc(ctx, r.Budget.Cancel)
	defer func() {
		stop()
		if err != nil {
			r.Budget.Reclaim()
		}
		err = errors.Join(err, r.Budget.Close())
	}()
	if err = fn(r); err != nil {
		err = r.exceeded(err)
	}
	return err
}

// exceeded returns the error of the limit that a statement exceeded, err if there is none.
func (r *Run) exceeded(err error) error {
	var full *promsql.MemoryError
	var process *memory.Error
	var derr *duck.Error
	switch {
	case errors.As(r.Budget.Err(), &process):
		return process
	case errors.As(r.Budget.Err(), &full):
		return request.TooMuchMemory(full.Limit, full.Needed)
	case errors.As(err, &derr) && derr.OutOfMemory:
		return &request.LimitError{Limit: "bytes of memory of DuckDB", Value: r.Settings.DuckMemoryBytes, Flag: "--query.memory-limit"}
	}
	return err
}

// Run evaluates the subtrees of one query under one budget.
type Run struct {
	*Attempt
	Budget *promsql.Budget
	shrink int64 // parts are smaller by this factor than they would have to be
	values int64 // in results so far

	raised plan.Raised // of the leaves of the subtree
	room   room        // of the rows of the subtree
}

// subtree evaluates a subtree, in parts if its samples are too many to be held at once.
func (r *Run) subtree(ctx context.Context, s *plan.Pushed) (*Result, error) {
	r.raised = plan.Raised{}
	var rows []vector.Row
	var err error
	driver := s.Driver()
	parts, merge, merged := s.Partition(r.MaxRows(s, r.shrink))
	if merged {
		driver = parts[0].Driver()
		of := make([][]vector.Row, len(parts))
		for i, part := range parts {
			if of[i], err = r.statement(ctx, part); err != nil {
				return nil, err
			}
		}
		if rows, merged, err = merge(of, r.memory()); err != nil {
			return nil, err
		}
	}
	if !merged {
		if rows, err = r.statement(ctx, s); err != nil {
			return nil, err
		}
	}
	r.Metrics.Subtrees[string(driver)].Inc()
	r.Metrics.Pushed.Series.Add(float64(len(rows)))
	out := &Result{Grid: s.Grid, labels: s.Labels, rows: rows, room: r.room}
	r.room = room{}
	present := make([]bool, len(s.Labels))
	for _, row := range rows {
		present[row.I] = slices.ContainsFunc(row.V, func(f float64) bool { return !value.IsStaleNaN(f) })
	}
	out.Warnings = s.Annotations(present, r.raised)
	return out, nil
}

// bytesPerValue is the size of a value of a series at a step.
const bytesPerValue = 8

// MaxRows is about the number of samples whose values at the steps fit into the memory of a query,
// for a subtree that is computed in parts. shrink makes parts smaller by that factor.
func (p *Attempt) MaxRows(s *plan.Pushed, shrink int64) int64 {
	var count, values int64
	for _, l := range s.Leaves {
		count += l.Resolution.Rows
		values += s.Held(l)
	}
	return p.Settings.maxRows(count, values) / shrink
}

// maxRows is the number of count samples that may be read at once, if the values that they lead to
// are held four times: as the values of leaves, in DuckDB's vectors, by an aggregate that keeps its
// input, and as a result.
func (s *Settings) maxRows(count, values int64) int64 {
	const copies = 4
	fit := s.QueryMemoryBytes / bytesPerValue / copies
	if values <= fit || count == 0 {
		return math.MaxInt64
	}
	return max(1, int64(float64(count)*float64(fit)/float64(values)))
}

// statement evaluates the leaves of a subtree, and runs one SQL statement over their values. It
// returns the rows by ordinal.
func (r *Run) statement(ctx context.Context, s *plan.Pushed) (rows []vector.Row, err error) {
	if err := r.HoldValues(s); err != nil {
		return nil, err
	}
	if err := memory.Of(ctx).Charge(valueBytes(s) + s.Computed()*bytesPerValue); err != nil {
		return nil, err
	}
	leaves, present := make([]*Values, len(s.Leaves)), make([][]uint32, len(s.Leaves))
	for i, l := range s.Leaves {
		if leaves[i], err = r.Leaf(ctx, s, l); err != nil {
			return nil, err
		}
		present[i] = leaves[i].present
	}
	s.Raise(present, r.raised)
	if s.Driver() == plan.DirectDriver {
		return r.Compute(s, leaves)
	}
	scans, release := Published(leaves)
	defer release()
	stmt := s.Statement(scans, strconv.Itoa(r.Budget.ID()))
	err = r.DB.Each(ctx, stmt.SQL, stmt.Args, []string{duck.UInteger, duck.Doubles}, func(n int, cols []duck.Vector) error {
		is := cols[0].Uint32s()
		lists, elems := cols[1].List()
		total := 0
		for i := range lists {
			total += int(lists[i].Length)
		}
		all, values := elems.Float64s(), make([]float64, 0, total)
		chunk := make([]vector.Row, n)
		for i := range chunk {
			l := lists[i]
			if !cols[0].Valid(i) || !cols[1].Valid(i) || int(is[i]) >= len(s.Labels) || l.Length != 1 && l.Length != uint64(s.Grid.N) {
				return fmt.Errorf("pushed statement of %s: row of series %d of %d has %d values, expected %d", s.Name, is[i], len(s.Labels), l.Length, s.Grid.N)
			}
			values = append(values, all[l.Offset:l.Offset+l.Length]...)
			chunk[i] = vector.Row{I: is[i], V: values[len(values)-int(l.Length) : len(values) : len(values)]}
		}
		rows = append(rows, chunk...)
		return r.hold(chunk)
	})
	if r.Budget.ForcedMonotonicity() {
		return nil, plan.ErrForcedMonotonicity
	}
	vector.Sort(rows)
	return rows, err
}

// Compute evaluates a subtree that is a leaf or needs no statement, over the values of its leaves.
// Rows may lie in the memory of the leaves, which becomes that of the subtree.
func (r *Run) Compute(s *plan.Pushed, leaves []*Values) ([]vector.Row, error) {
	in, all := make([][]vector.Row, len(leaves)), 0
	for i, l := range leaves {
		in[i] = l.rows()
		r.room.slabs = append(r.room.slabs, l.slabs...)
		for _, row := range in[i] {
			all += len(row.V)
		}
	}
	if all > r.Settings.MaxSamples { // upstream's engine would hold those that are present
		present := int64(0)
		for _, rows := range in {
			for _, row := range rows {
				for _, v := range row.V {
					if !value.IsStaleNaN(v) {
						present++
					}
				}
			}
		}
		if err := r.most(present); err != nil {
			return nil, err
		}
	}
	rows, err := s.Compute(in, &plan.Tools{Memory: r.memory(), Over: r.over})
	if err != nil {
		return nil, err
	}
	return rows, r.hold(rows)
}

// memory is that of the operators outside of statements.
func (r *Run) memory() vector.Memory { return vector.Memory{Room: r.room.take, Budget: r.Budget} }

// Published makes scans of the values of leaves, which DuckDB reads in place, until release.
func Published(leaves []*Values) (scans []plan.Scan, release func()) {
	var all []*promsql.Published
	for _, l := range leaves {
		p := promsql.Publish(l.I, l.v)
		all = append(all, p)
		scans = append(scans, ScanOf(p.ID()))
	}
	return scans, func() {
		for _, p := range all {
			p.Close()
		}
		for _, l := range leaves {
			l.release()
		}
	}
}

// ScanOf is the scan of the values that are published under an id.
func ScanOf(id int64) plan.Scan {
	return plan.Scan(fmt.Sprintf("SELECT i, v FROM prom_rows(%d)", id))
}

// hold counts the values of rows of results.
func (r *Run) hold(rows []vector.Row) error {
	for i := range rows {
		r.values += int64(len(rows[i].V))
	}
	return r.most(r.values)
}

// most checks a number of values that the query holds.
func (r *Run) most(n int64) error {
	if limit := int64(r.Settings.MaxSamples); n > limit {
		return &request.LimitError{Limit: "samples per query", Value: limit, Needed: n, Flag: "--query.max-samples"}
	}
	return nil
}
