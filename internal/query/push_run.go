package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
)

// evaluate is run, with what the query reads fetched before, if it can be afforded.
func (p *pushing) evaluate(ctx context.Context, pl *plan.Plan, planned *plan.Query) (results map[string]*pushedResult, err error) {
	if err := p.planReads(ctx, pl, planned); err != nil {
		return nil, err
	}
	if err := p.afford(ctx, pl, planned); err != nil {
		return nil, err
	}
	release, err := p.ahead(ctx, pl)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return p.run(ctx, pl)
}

// run evaluates the pushed subtrees of a plan, one after the other, by their names. What does not fit into the memory is tried again in smaller
// parts, for the samples that a part will hold are only estimated.
func (p *pushing) run(ctx context.Context, pl *plan.Plan) (map[string]*pushedResult, error) {
	if len(pl.Pushed) == 0 {
		return nil, nil
	}
	for shrink := int64(1); ; shrink *= shrinkStep {
		results, err := p.try(ctx, pl, shrink)
		var limit *request.LimitError
		if shrink == maxShrink || !errors.As(err, &limit) || limit.Flag != request.MemoryFlag {
			return results, err
		}
	}
}

// shrinkStep is how much smaller parts become when they did not fit, and maxShrink how much before a query has too little memory.
const (
	shrinkStep = 4
	maxShrink  = shrinkStep * shrinkStep
)

// try is run with parts of one size. The memory is that of one query.
func (p *pushing) try(ctx context.Context, pl *plan.Plan, shrink int64) (results map[string]*pushedResult, err error) {
	budget := promsql.NewBudget(p.stage.settings.QueryMemoryBytes)
	stop := context.AfterFunc(ctx, budget.Cancel)
	defer func() {
		stop()
		if err != nil {
			budget.Reclaim()
		}
		err = errors.Join(err, budget.Close())
	}()
	results = map[string]*pushedResult{}
	r := &runner{pushing: p, budget: budget, shrink: shrink}
	for _, s := range pl.Pushed {
		if results[s.Name], err = r.subtree(ctx, s); err != nil {
			return nil, r.explain(err)
		}
	}
	return results, nil
}

// runner runs the statements of one query.
type runner struct {
	*pushing
	budget *promsql.Budget
	shrink int64 // parts are smaller by this factor than they would have to be; 0 = they are not
	values int64 // in results so far

	raised plan.Raised // of the leaves of the subtree
}

// subtree evaluates a subtree, in parts if its samples are too many to be held at once.
func (r *runner) subtree(ctx context.Context, s *plan.Pushed) (*pushedResult, error) {
	r.raised = plan.Raised{}
	rows, err := r.rows(ctx, s)
	if err != nil {
		return nil, err
	}
	r.stage.metrics.Pushed.WithLabelValues("subtrees").Inc()
	r.stage.metrics.Pushed.WithLabelValues("series").Add(float64(len(rows)))
	return r.result(s, rows)
}

func (r *runner) rows(ctx context.Context, s *plan.Pushed) ([]plan.Row, error) {
	if parts, merge, ok := s.Partition(r.maxRows(s)); ok {
		out := make([][]plan.Row, len(parts))
		for i, part := range parts {
			var err error
			if out[i], err = r.statement(ctx, part); err != nil {
				return nil, err
			}
		}
		if rows, ok := merge(out); ok {
			return rows, nil
		}
	}
	return r.statement(ctx, s)
}

// bytesPerValue is the size of a value of a series at a step.
const bytesPerValue = 8

// maxRows is the number of samples whose values at the steps fit into the memory of a query, for a subtree that is to be computed in parts.
func (r *runner) maxRows(s *plan.Pushed) int64 {
	var samples, values int64
	for _, l := range s.Leaves {
		samples += l.Resolution.Rows
		values += int64(len(l.Resolution.Series)) * int64(l.Spec.Grid.N)
	}
	return r.stage.settings.maxRows(samples, values) / max(r.shrink, 1)
}

// maxRows is how many of samples may be read at once, if the values that they lead to are held four times: as the values of leaves, in DuckDB's vectors, by
// an aggregate that keeps its input, and as a result.
func (s *Settings) maxRows(samples, values int64) int64 {
	const copies = 4
	fit := s.QueryMemoryBytes / bytesPerValue / copies
	if values <= fit || samples == 0 {
		return math.MaxInt64
	}
	return max(1, int64(float64(samples)*float64(fit)/float64(values)))
}

// resultTypes are the SQL types of a statement's columns.
var resultTypes = []string{duck.UInteger, duck.Doubles}

// statement evaluates the leaves of a subtree, and runs one statement over their values. It returns the rows by ordinal.
func (r *runner) statement(ctx context.Context, s *plan.Pushed) (rows []plan.Row, err error) {
	leaves, err := r.leaves(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, ok := s.Root.(*plan.Leaf); ok {
		rows, err = leaves[0].rows(), r.hold(leaves[0].v)
	} else {
		rows, err = r.over(ctx, s, leaves)
	}
	slices.SortFunc(rows, func(a, b plan.Row) int { return cmp.Compare(a.I, b.I) })
	return rows, err
}

// leaves evaluates the leaves of a subtree.
func (r *runner) leaves(ctx context.Context, s *plan.Pushed) ([]*leafRows, error) {
	if err := r.holdValues(s.Leaves); err != nil {
		return nil, err
	}
	if err := memory.Of(ctx).Charge(valueBytes(s.Leaves)); err != nil {
		return nil, err
	}
	out, present := make([]*leafRows, len(s.Leaves)), make([][]uint32, len(s.Leaves))
	for i, l := range s.Leaves {
		var err error
		if out[i], err = r.leaf(ctx, l); err != nil {
			return nil, err
		}
		present[i] = out[i].i
	}
	s.Raise(present, r.raised)
	return out, nil
}

// over runs the statement of a subtree over the values of its leaves.
func (r *runner) over(ctx context.Context, s *plan.Pushed, leaves []*leafRows) (rows []plan.Row, err error) {
	scans, release := published(leaves)
	defer release()
	stmt := s.Statement(scans, strconv.Itoa(r.budget.ID()))
	r.stage.metrics.Pushed.WithLabelValues("statements").Inc()
	err = r.stage.db.EachWith(ctx, stmt.SQL, stmt.Args, resultTypes, func(n int, cols []duck.Vector) error {
		got, err := rowsOf(n, cols, s)
		if err != nil {
			return err
		}
		rows = append(rows, got...)
		for i := range got {
			if err := r.hold([][]float64{got[i].V}); err != nil {
				return err
			}
		}
		return nil
	})
	if r.budget.ForcedMonotonicity() {
		return nil, plan.ErrForcedMonotonicity
	}
	return rows, err
}

// published makes scans of the values of leaves, which DuckDB reads where they are, until release.
func published(leaves []*leafRows) (scans []plan.Scan, release func()) {
	var all []*promsql.Published
	for _, l := range leaves {
		p := promsql.Publish(l.i, l.v)
		all = append(all, p)
		scans = append(scans, plan.Scan{SQL: fmt.Sprintf("SELECT i, v FROM prom_rows(%d)", p.ID()), Values: true})
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

// hold counts values of results.
func (r *runner) hold(values [][]float64) error {
	for _, v := range values {
		r.values += int64(len(v))
	}
	if limit := int64(r.stage.settings.MaxSamples); r.values > limit {
		return &request.LimitError{Limit: "samples per query", Value: limit, Needed: r.values, Flag: "--query.max-samples"}
	}
	return nil
}

// rowsOf copies the rows of a chunk.
func rowsOf(n int, cols []duck.Vector, s *plan.Pushed) ([]plan.Row, error) {
	is := cols[0].Uint32s()
	lists, elems := cols[1].List()
	total := 0
	for i := range lists {
		total += int(lists[i].Length)
	}
	all, values := elems.Float64s(), make([]float64, 0, total)
	rows := make([]plan.Row, n)
	for i := range rows {
		l := lists[i]
		if !cols[0].Valid(i) || !cols[1].Valid(i) || int(is[i]) >= len(s.Labels) || l.Length != 1 && l.Length != uint64(s.Grid.N) {
			return nil, fmt.Errorf("pushed statement of %s: row of series %d of %d has %d values, expected %d", s.Name, is[i], len(s.Labels), l.Length, s.Grid.N)
		}
		values = append(values, all[l.Offset:l.Offset+l.Length]...)
		rows[i] = plan.Row{I: is[i], V: values[len(values)-int(l.Length) : len(values) : len(values)]}
	}
	return rows, nil
}

// result makes series of rows.
func (r *runner) result(s *plan.Pushed, rows []plan.Row) (*pushedResult, error) {
	t := make([]int64, s.Grid.N)
	for k := range t {
		t[k] = s.Grid.Start + int64(k)*s.Grid.Step
	}
	out := &pushedResult{series: make([]*samples.Series, len(rows))}
	backing := make([]samples.Series, len(rows))
	present := make([]bool, len(s.Labels))
	for i, row := range rows {
		v := row.V
		if len(v) == 1 {
			v = slices.Repeat(v, len(t))
		}
		backing[i] = samples.NewSeries(s.Labels[row.I], t, v)
		out.series[i] = &backing[i]
		present[row.I] = slices.ContainsFunc(v, func(f float64) bool { return !value.IsStaleNaN(f) })
	}
	out.warnings = s.Annotations(present, r.raised)
	return out, nil
}

// explain names the limit that a statement ran into.
func (r *runner) explain(err error) error {
	var full *promsql.MemoryError
	if errors.As(r.budget.Err(), &full) {
		return request.TooMuchMemory(full.Limit, full.Needed)
	}
	var derr *duck.Error
	if errors.As(err, &derr) && derr.OutOfMemory {
		return &request.LimitError{Limit: "bytes of memory of DuckDB", Value: r.stage.settings.MemoryLimitBytes, Flag: "--query.memory-limit"}
	}
	return err
}
