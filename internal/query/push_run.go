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
	"github.com/prometheus/prometheus/util/annotations"

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

// shrinkStep is how much smaller parts become when they did not fit, and maxShrink how much before a
// query has too little memory.
const (
	shrinkStep = 4
	maxShrink  = shrinkStep * shrinkStep
)

// run evaluates the pushed subtrees of a plan, one after the other, by their names. A query that
// exceeds its memory is tried again in smaller parts, because the samples of a part are only
// estimated.
func (p *pushing) run(ctx context.Context, pl *plan.Plan) (results map[string]*pushedResult, err error) {
	if len(pl.Pushed) == 0 {
		return nil, nil
	}
	for shrink := int64(1); ; shrink *= shrinkStep {
		results = map[string]*pushedResult{}
		err = p.budgeted(ctx, shrink, func(r *runner) error {
			for _, s := range pl.Pushed {
				if results[s.Name], err = r.subtree(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
		var limit *request.LimitError
		if shrink == maxShrink || !errors.As(err, &limit) || limit.Flag != request.MemoryFlag {
			return results, err
		}
	}
}

// budgeted calls fn with a runner whose memory is that of one query. Its error names the limit that a
// statement exceeded.
func (p *pushing) budgeted(ctx context.Context, shrink int64, fn func(*runner) error) (err error) {
	r := &runner{pushing: p, budget: promsql.NewBudget(p.settings.queryMemoryBytes), shrink: shrink}
	stop := context.AfterFunc(ctx, r.budget.Cancel)
	defer func() {
		stop()
		if err != nil {
			r.budget.Reclaim()
		}
		err = errors.Join(err, r.budget.Close())
	}()
	err = fn(r)
	var full *promsql.MemoryError
	var derr *duck.Error
	switch {
	case err == nil:
		return nil
	case errors.As(r.budget.Err(), &full):
		return request.TooMuchMemory(full.Limit, full.Needed)
	case errors.As(err, &derr) && derr.OutOfMemory:
		return &request.LimitError{Limit: "bytes of memory of DuckDB", Value: p.settings.duckMemoryBytes, Flag: "--query.memory-limit"}
	}
	return err
}

// pushedResult is the value of a pushed subtree.
type pushedResult struct {
	series   []*samples.Series
	warnings annotations.Annotations
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
	var rows []plan.Row
	var err error
	parts, merge, merged := s.Partition(r.maxRows(s))
	if merged {
		out := make([][]plan.Row, len(parts))
		for i, part := range parts {
			if out[i], err = r.statement(ctx, part); err != nil {
				return nil, err
			}
		}
		rows, merged = merge(out)
	}
	if !merged {
		if rows, err = r.statement(ctx, s); err != nil {
			return nil, err
		}
	}
	r.metrics.Pushed.WithLabelValues("subtrees").Inc()
	r.metrics.Pushed.WithLabelValues("series").Add(float64(len(rows)))
	return r.result(s, rows), nil
}

// bytesPerValue is the size of a value of a series at a step.
const bytesPerValue = 8

// maxRows is the number of samples whose values at the steps fit into the memory of a query, for a subtree that is to be computed in parts.
func (r *runner) maxRows(s *plan.Pushed) int64 {
	var count, values int64
	for _, l := range s.Leaves {
		count += l.Resolution.Rows
		values += int64(len(l.Resolution.Series)) * int64(l.Spec.Grid.N)
	}
	return r.settings.maxRows(count, values) / max(r.shrink, 1)
}

// maxRows is how many of count samples may be read at once, if the values that they lead to are held four times: as the values of leaves, in DuckDB's vectors, by
// an aggregate that keeps its input, and as a result.
func (s *executorSettings) maxRows(count, values int64) int64 {
	const copies = 4
	fit := s.queryMemoryBytes / bytesPerValue / copies
	if values <= fit || count == 0 {
		return math.MaxInt64
	}
	return max(1, int64(float64(count)*float64(fit)/float64(values)))
}

// resultTypes are the SQL types of a statement's columns.
var resultTypes = []string{duck.UInteger, duck.Doubles}

// statement evaluates the leaves of a subtree, and runs one statement over their values. It returns
// the rows by ordinal.
func (r *runner) statement(ctx context.Context, s *plan.Pushed) (rows []plan.Row, err error) {
	if err := r.holdValues(s.Leaves); err != nil {
		return nil, err
	}
	if err := memory.Of(ctx).Charge(valueBytes(s.Leaves)); err != nil {
		return nil, err
	}
	leaves, present := make([]*leafRows, len(s.Leaves)), make([][]uint32, len(s.Leaves))
	for i, l := range s.Leaves {
		if leaves[i], err = r.leaf(ctx, l); err != nil {
			return nil, err
		}
		present[i] = leaves[i].i
	}
	s.Raise(present, r.raised)
	if _, ok := s.Root.(*plan.Leaf); ok {
		rows = make([]plan.Row, len(leaves[0].i))
		for k, i := range leaves[0].i {
			rows[k] = plan.Row{I: i, V: leaves[0].v[k]}
		}
		err = r.hold(leaves[0].v)
	} else {
		rows, err = r.over(ctx, s, leaves)
	}
	slices.SortFunc(rows, func(a, b plan.Row) int { return cmp.Compare(a.I, b.I) })
	return rows, err
}

// over runs the statement of a subtree over the values of its leaves.
func (r *runner) over(ctx context.Context, s *plan.Pushed, leaves []*leafRows) (rows []plan.Row, err error) {
	scans, release := published(leaves)
	defer release()
	stmt := s.Statement(scans, strconv.Itoa(r.budget.ID()))
	r.metrics.Pushed.WithLabelValues("statements").Inc()
	err = r.db.EachWith(ctx, stmt.SQL, stmt.Args, resultTypes, func(n int, cols []duck.Vector) error {
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
	if limit := int64(r.settings.maxSamples); r.values > limit {
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
func (r *runner) result(s *plan.Pushed, rows []plan.Row) *pushedResult {
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
	return out
}
