// Package exec evaluates in DuckDB the parts of a query that the planner takes out of it: it reads
// the samples of their leaves, evaluates range functions series by series, and runs one SQL
// statement for the rest of each part.
package exec

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Settings are the limits of an executor. Callers fill every field.
type Settings struct {
	MaxSamples       int   // of the results of one query
	Threads          int   // that evaluate leaves
	QueryMemoryBytes int64 // of values and of what SQL functions keep, of one query
	DuckMemoryBytes  int64 // DuckDB's memory limit

	// The least time of a query is estimated with these rates.
	FetchBytesPerSecond int64
	SamplesPerSecond    int64 // of one thread
}

// Executor evaluates parts of queries in DuckDB. It is safe for concurrent use.
type Executor struct {
	Settings  Settings
	Snapshots *snapshot.Cache
	Files     *source.Files
	Series    *lookup.Chooser
	Samples   *samples.Reader
	DB        *duck.DB
	Metrics   *request.Metrics
	Logger    *slog.Logger
}

// Attempt is one try to evaluate parts of a query, on one snapshot.
type Attempt struct {
	*Executor
	Span   *snapshot.Range   // of the query
	Snap   *catalog.Snapshot // of Span
	Wide   bool              // Snap is wider than Span by replica.Around
	Recent bool              // samples may come from the memory of those that this process has stored

	scratch *scratch
	reads   map[*plan.Leaf]*Input // of a remote store, planned before anything is read
	raw     []*Input              // likewise, of the engine's selectors
}

// selected are the series of a selector, as they were found and as the planner sees them.
type selected struct {
	lookup.Selector
	expr    *parser.VectorSelector
	found   *lookup.Resolution // nil: they were not looked up
	planned *plan.Resolution
}

// Attempt returns a try on a snapshot of a time range, or of a wider one (snapshot.ReadWide).
func (x *Executor) Attempt(span *snapshot.Range, snap *catalog.Snapshot, wide bool) *Attempt {
	return &Attempt{Executor: x, Span: span, Snap: snap, Wide: wide, scratch: newScratch()}
}

// Plan finds the series of the selectors, those that can be read from memory first, and lets the
// planner decide which parts of the query are pushed down. It charges the labels of the series to
// the query's budgets.
func (p *Attempt) Plan(ctx context.Context, planned *plan.Query) (*plan.Plan, error) {
	x := p.scratch
	again := len(x.selected) > 0
	for i, sel := range planned.Selectors() {
		if again { // the same selectors, whose series are known
			x.selected[i].expr = sel.Expr
			continue
		}
		s := lookup.Selector{Matchers: sel.Matchers}
		s.MinT, s.MaxT = p.Span.Clip(sel.MinT, sel.MaxT)
		x.asked, x.selected = append(x.asked, s), append(x.selected, selected{Selector: s, expr: sel.Expr})
	}
	if p.Recent && !p.Wide && !again {
		found, err := p.Series.Held(ctx, *p.Snap, x.asked, &x.held)
		if err != nil {
			return nil, err
		}
		if found != nil {
			p.Metrics.Heads.Inc()
		}
		for i, r := range found {
			if r == nil {
				continue
			}
			if err := request.Found(ctx, r.Series, labelsOf); err != nil {
				return nil, err
			}
			x.selected[i].found, x.selected[i].planned = r, x.seen(r)
		}
	}
	var count, values int64
	resolved := x.resolved
	clear(resolved)
	for i := range x.selected {
		s := &x.selected[i]
		if s.found == nil {
			if err := p.look(ctx, s, i); err != nil {
				return nil, err
			}
		}
		r := s.found
		if err := request.Selected(ctx, r.Series, labelsOf); err != nil {
			return nil, err
		}
		resolved[s.expr] = s.planned
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("plan a query: %w", err)
		}
		count, values = count+r.Samples, values+int64(len(r.Series)*planned.Steps())
	}
	planned.Bound(p.Settings.maxRows(count, values))
	pl := planned.Build(resolved)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("plan a query: %w", err)
	}
	if p.Logger.Enabled(ctx, slog.LevelDebug) {
		p.Logger.Debug("plan a query", "tenant", tenant.From(ctx), "plan", pl)
	}
	return pl, nil
}

// Resolution returns the series of a selector that Plan has found, nil if it is none of the
// query's.
func (p *Attempt) Resolution(of *parser.VectorSelector) *lookup.Resolution {
	for i := range p.scratch.selected {
		if s := &p.scratch.selected[i]; s.expr == of {
			return s.found
		}
	}
	return nil
}

// Stored returns how many samples the objects have of the series that Plan has found, about, and
// once for each selector. A histogram counts as histogramUnits.
func (p *Attempt) Stored() (n int64) {
	for i := range p.scratch.selected {
		r := p.scratch.selected[i].found
		n += r.Samples
		if !r.HasHists {
			continue
		}
		for k := range r.Series {
			for _, at := range r.Series[k].At {
				n += histogramUnits * r.Hists(at)
			}
		}
	}
	return n
}

// HasDeltas reports whether Plan has found series of delta temporality.
func (p *Attempt) HasDeltas() bool {
	return slices.ContainsFunc(p.scratch.selected, func(s selected) bool { return s.found != nil && s.found.HasDeltas })
}

func labelsOf(s *lookup.ResolvedSeries) labels.Labels { return s.Labels }

// equalSelectors is the number of selectors among which one looks for an equal one.
const equalSelectors = 64

// look finds the series of the i-th selector in objects, or takes those of an equal one.
func (p *Attempt) look(ctx context.Context, s *selected, i int) error {
	equal := func(a, b *labels.Matcher) bool {
		return a == b || a.Type == b.Type && a.Name == b.Name && a.Value == b.Value
	}
	for k := max(0, i-equalSelectors); k < i; k++ {
		if o := &p.scratch.selected[k]; o.MinT == s.MinT && o.MaxT == s.MaxT && slices.EqualFunc(o.Matchers, s.Matchers, equal) {
			s.found, s.planned = o.found, o.planned
			return nil
		}
	}
	m, err := p.Series.Match(ctx, *p.Snap, p.Wide, s.MinT, s.MaxT, s.Matchers)
	if err != nil {
		return err
	}
	if err := request.Found(ctx, m.Series, lookup.LabelsOf); err != nil {
		return err
	}
	if m.HasDeltas() && !p.Wide {
		return request.ErrNarrow // the engine's reads of the counters need it
	}
	s.found = m.Resolution()
	s.planned = p.scratch.seen(s.found)
	return nil
}

// seen returns what the planner sees of the series of a selector.
func (x *scratch) seen(r *lookup.Resolution) *plan.Resolution {
	x.planned = append(x.planned, plan.Resolution{Rows: r.Samples, Refused: Refused(r), Starts: r.Starts})
	to := &x.planned[len(x.planned)-1]
	if to.Refused != "" {
		return to
	}
	place := func(i int) int64 { return int64(i) + 1 } // small reads are not divided
	if !r.Small() && !r.FromHead {
		main := r.Largest()
		place = func(i int) int64 { return r.Series[i].Place(main) }
	}
	begin, all := len(x.series), slices.Grow(x.series, len(r.Series))
	for i := range r.Series {
		all = append(all, plan.Series{ID: uint64(i), Labels: r.Series[i].Labels, Place: place(i)})
	}
	x.series, to.Series = all, slices.Clip(all[begin:])
	return to
}

// Refused returns the reason why a resolution's series are the engine's, "" if they are not.
func Refused(r *lookup.Resolution) string {
	switch {
	case r.HasDeltas:
		return "there are series of delta temporality"
	case r.HasHists:
		return "there are native histograms among the series"
	default:
		return ""
	}
}
