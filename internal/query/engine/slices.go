package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// Part is a slice of a question, which any process can answer over the same store.
type Part struct {
	divide.Slice
	Text     string                 // the query, whose values depend on no other times; "": Selector is asked for
	Selector *parser.VectorSelector // whose samples are asked for
	Pin      divide.Pin
}

// Parts cuts a question into parts, at most n unless each would have too many steps. Together they
// have the rows of the question: of a range query of any number of steps or, with step 0, the
// samples of a selector. undivided is why there can be one part only. With large, a question that
// reads at most --query.divide-bytes has one.
func (e *Engine) Parts(ctx context.Context, of storage.Queryable, ask request.Question, n int, large bool) (parts []Part, undivided string, err error) {
	start, end := ask.Start.UnixMilli(), ask.End.UnixMilli()
	var selector *parser.VectorSelector
	if ask.Step == 0 {
		if selector, err = e.selector(ask.Text); err != nil {
			return nil, "", &badQuery{err}
		}
		start, end = max(start, key.MinTime), min(end, key.MaxTime)
	}
	asked := parser.EvalStmt{Start: time.UnixMilli(start), End: time.UnixMilli(end), Interval: ask.Step}
	grid := plan.Grid{Start: start, Step: max(1, ask.Step.Milliseconds())}
	grid.N = int((end-start)/grid.Step) + 1
	switch most := divide.MaxSlices * divide.MaxSteps; {
	case selector != nil:
		ask.Text, asked.Start = fmt.Sprintf("%s[%dms]", selector, grid.N), asked.End
	case ask.Step < time.Millisecond:
		return nil, "", &badQuery{fmt.Errorf("want a step of at least 1ms, got %s", ask.Step)}
	case grid.N < 1 || grid.N > most:
		return nil, "", &badQuery{fmt.Errorf("want at most %d steps, in at most %d slices of %d; ask for a shorter time, or for a larger step", most, divide.MaxSlices, divide.MaxSteps)}
	}
	prepared, err := e.query(of, nil, ask.Text, asked, func(v *view) (promql.Query, error) {
		return e.upstream.NewRangeQuery(ctx, v, nil, ask.Text, asked.Start, asked.End, asked.Interval)
	})
	if err != nil {
		return nil, "", &badQuery{err}
	}
	q := prepared.(*Query)
	defer q.Close()
	err = e.Run(ctx, func(ctx context.Context) error {
		_, err := q.Attempt(ctx, func(p *exec.Attempt) error {
			defer p.Release()
			planned := plan.New(q.asked.Expr, q.Options(ctx))
			pl, err := p.Plan(ctx, planned)
			if err != nil {
				return err
			}
			_, estimate, err := p.Price(ctx, pl, planned)
			if err != nil {
				return err
			}
			if selector == nil {
				undivided = q.undividable(p)
			}
			if large && estimate.Bytes <= e.settings.DivideBytes {
				n = 1
			}
			slices, err := e.slices(grid, n, selector != nil, undivided, divide.Extent{Bytes: estimate.Bytes, From: e.settings.DivideBytes, Window: windowOf(p.Snap), Windows: e.settings.DivideWindows})
			if err != nil {
				return err
			}
			parts = parts[:0]
			for _, s := range slices {
				part := Part{Slice: s, Selector: selector, Pin: divide.Pin{
					Version: divide.Version, Tenant: tenant.From(ctx), MinT: s.From, MaxT: s.Upto,
					Lookback: e.settings.Lookback.Milliseconds(), Options: divide.OptionsOf(e.settings.UseStartTimestamps, p.Series.Rule(ctx)),
				}}
				if selector == nil {
					k, stmt, err := e.expression(&divide.Piece{
						Query: ask.Text, Start: start, End: end, Step: grid.Step, From: s.From, Upto: s.Upto, Lookback: part.Pin.Lookback,
					})
					if err != nil {
						return err
					}
					if part.Text = ask.Text; k.Expr.String() != q.expr.Expr.String() {
						part.Text = k.Expr.String()
					}
					part.Pin.MinT, part.Pin.MaxT = promql.FindMinMaxTime(&stmt)
				}
				part.Pin.Snapshot = narrowed(p, part.Pin.MinT, part.Pin.MaxT)
				parts = append(parts, part)
			}
			return nil
		})
		return StorageError(err)
	})
	return parts, undivided, err
}

// selector returns the selector that a text is.
func (e *Engine) selector(text string) (*parser.VectorSelector, error) {
	expr, err := e.parser.parsed(text)
	if err != nil {
		return nil, err
	}
	s, ok := expr.Expr.(*parser.VectorSelector)
	if !ok || s.OriginalOffset != 0 || s.OriginalOffsetExpr != nil || s.Timestamp != nil || s.StartOrEnd != 0 || s.Anchored || s.Smoothed {
		return nil, errors.New("without a step, whose values it would have, want a plain selector, whose samples are read")
	}
	return s, nil
}

// slices cuts the steps of a query, or the milliseconds of samples, into at most n slices that are
// worth it, and into more if a query has too many steps.
func (e *Engine) slices(grid plan.Grid, n int, samples bool, undivided string, x divide.Extent) (out []divide.Slice, err error) {
	switch {
	case samples: // one at the end of a window is in the next window's block
		grid.Start++
		for _, s := range divide.Slices(grid, n, 1, x) {
			out = append(out, divide.Slice{From: s.From - 1, Upto: s.Upto - 1})
		}
	case undivided == "":
		for _, s := range divide.Slices(grid, n, 1, x) {
			out = append(out, s.Fine(grid.Step)...)
		}
	case grid.N-1 > divide.MaxSteps:
		return nil, &badQuery{fmt.Errorf("%w; the query cannot be divided: %s", errResolution, undivided)}
	default:
		out = []divide.Slice{{From: grid.Start, Upto: grid.End()}}
	}
	return out, nil
}

// Pinned returns ctx whose reads see a snapshot that another process has taken for a Part.
func (e *Engine) Pinned(ctx context.Context, raw []byte) (context.Context, error) {
	p, err := divide.ParsePin(raw)
	if err != nil {
		return ctx, &badQuery{err}
	}
	own := divide.OptionsOf(e.settings.UseStartTimestamps, e.exec.Series.Rule(ctx))
	r := request.From(ctx)
	switch lookback := e.settings.Lookback.Milliseconds(); {
	case p.Tenant != tenant.From(ctx):
		return ctx, &badQuery{fmt.Errorf("the snapshot is of tenant %q, the request of %q", p.Tenant, tenant.From(ctx))}
	case own != p.Options || lookback != p.Lookback:
		return ctx, &badQuery{fmt.Errorf("the settings of this process differ from those of the snapshot's: %+v and a lookback of %d ms, not %+v and %d ms", own, lookback, p.Options, p.Lookback)}
	case !r.AsOf.IsZero():
		return ctx, &badQuery{errors.New("a snapshot and as_of are two states of the data; give one")}
	}
	r.Snapshot = p.Pinned()
	return request.With(ctx, r), nil
}
