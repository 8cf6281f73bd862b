// Package exec evaluates in DuckDB the parts of a query that the planner takes out of it: it reads
// the samples of their leaves, evaluates range functions series by series, and runs one SQL
// statement for the rest of each part.
package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/metrics"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/tenant"
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
	Metrics   *metrics.Metrics
	Logger    *slog.Logger
}

// Attempt is one try to evaluate parts of a query, on one snapshot.
type Attempt struct {
	*Executor
	Span     *snapshot.Range                               // of the query
	Snap     catalog.Snapshot                              // of Span
	Wide     bool                                          // Snap is wider than Span by replica.Around
	Recent   bool                                          // samples may come from the memory of those that this process has stored
	Resolved map[*parser.VectorSelector]*lookup.Resolution // by Plan

	known map[string]*selected  // by selectorKey
	reads map[*plan.Leaf]*Input // of a remote store, planned before anything is read
	raw   []*Input              // likewise, of the engine's selectors
}

// selected are the series of a selector, as they were found and as the planner sees them.
type selected struct {
	found   *lookup.Resolution
	planned *plan.Resolution
}

// Attempt returns a try on a snapshot of a time range, or of a wider one (snapshot.ReadWide).
func (x *Executor) Attempt(span *snapshot.Range, snap catalog.Snapshot, wide bool) *Attempt {
	return &Attempt{Executor: x, Span: span, Snap: snap, Wide: wide, known: map[string]*selected{}}
}

// Plan finds the series of the selectors, and lets the planner decide which parts of the query are
// pushed down. It charges the labels of the series to the query's budgets.
func (p *Attempt) Plan(ctx context.Context, planned *plan.Query) (*plan.Plan, error) {
	p.Resolved = map[*parser.VectorSelector]*lookup.Resolution{}
	resolved := map[*parser.VectorSelector]*plan.Resolution{}
	var count, values int64
	if err := p.held(ctx, planned.Selectors()); err != nil {
		return nil, err
	}
	for _, sel := range planned.Selectors() {
		mint, maxt := p.Span.Clip(sel.MinT, sel.MaxT)
		k := selectorKey(mint, maxt, sel.Matchers)
		s := p.known[k]
		if s == nil {
			m, err := p.Series.Match(ctx, p.Snap, p.Wide, mint, maxt, sel.Matchers)
			if err != nil {
				return nil, err
			}
			if err := request.Found(ctx, m.Series, lookup.LabelsOf); err != nil {
				return nil, err
			}
			if m.HasDeltas() && !p.Wide {
				return nil, request.ErrNarrow // the engine's reads of the counters need it
			}
			s = seen(m.Resolution())
			p.known[k] = s
		}
		r := s.found
		if err := request.Selected(ctx, r.Series, func(s *lookup.ResolvedSeries) labels.Labels { return s.Labels }); err != nil {
			return nil, err
		}
		p.Resolved[sel.Expr], resolved[sel.Expr] = r, s.planned
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
	p.Logger.Debug("plan a query", "tenant", tenant.From(ctx), "plan", pl)
	return pl, nil
}

// held notes the selectors that can be read from memory, if all can.
func (p *Attempt) held(ctx context.Context, all []plan.Selector) error {
	if !p.Recent || p.Wide || len(p.known) > 0 {
		return nil
	}
	asked := make([]lookup.Selector, len(all))
	for i, sel := range all {
		asked[i].MinT, asked[i].MaxT = p.Span.Clip(sel.MinT, sel.MaxT)
		asked[i].Matchers = sel.Matchers
	}
	found, err := p.Series.Held(ctx, p.Snap, asked)
	if err != nil {
		return err
	}
	if found != nil {
		p.Metrics.Heads.Inc()
	}
	for i, r := range found {
		if r == nil {
			continue
		}
		if err := request.Found(ctx, r.Series, func(s *lookup.ResolvedSeries) labels.Labels { return s.Labels }); err != nil {
			return err
		}
		p.known[selectorKey(asked[i].MinT, asked[i].MaxT, asked[i].Matchers)] = seen(r)
	}
	return nil
}

// seen returns the series of a selector with what the planner sees of them.
func seen(r *lookup.Resolution) *selected {
	to := &plan.Resolution{Rows: r.Samples, Refused: Refused(r), Starts: r.Starts}
	if to.Refused == "" {
		to.Series = make([]plan.Series, len(r.Series))
		place := func(i int) int64 { return int64(i) + 1 } // small reads are not divided
		if !r.Small() && !r.FromHead {
			main := r.Largest()
			place = func(i int) int64 { return r.Series[i].Place(main) }
		}
		for i := range r.Series {
			to.Series[i] = plan.Series{ID: r.Series[i].ID, Labels: r.Series[i].Labels, Place: place(i)}
		}
	}
	return &selected{r, to}
}

// selectorKey returns a key: equal for equal ranges and matchers only.
func selectorKey(mint, maxt int64, ms []*labels.Matcher) string {
	b := make([]byte, 0, 128)
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	text := func(s string) { number(int64(len(s))); b = append(b, s...) }
	number(mint)
	number(maxt)
	for _, m := range ms {
		text(m.Name)
		number(int64(m.Type))
		text(m.Value)
	}
	return string(b)
}

// maxDeletions is the number of tombstones that a statement can leave out, each by a condition on
// every sample.
const maxDeletions = 32

// Refused returns the reason why SQL cannot evaluate over a resolution's series, "" if it can.
func Refused(r *lookup.Resolution) string {
	deleting := map[int]bool{}
	for i := range r.Series {
		for _, k := range r.Series[i].Tombstones {
			deleting[k] = true
		}
	}
	switch {
	case r.HasDeltas:
		return "there are series of delta temporality"
	case r.HasHists:
		return "there are native histograms among the series"
	case !r.IDsAgree:
		return "an id stands for different series"
	case len(deleting) > maxDeletions:
		return fmt.Sprintf("more than %d deletions concern it", maxDeletions)
	default:
		return ""
	}
}
