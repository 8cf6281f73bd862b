package query

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

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

// executorSettings are the limits of an executor. Callers fill every field.
type executorSettings struct {
	maxSamples       int   // of the results of one query
	threads          int   // that evaluate leaves
	queryMemoryBytes int64 // of values and of what SQL functions keep, of one query
	duckMemoryBytes  int64 // DuckDB's memory limit

	// The least time of a query is estimated with these rates.
	fetchBytesPerSecond int64
	samplesPerSecond    int64 // of one thread
}

// executor evaluates parts of queries in DuckDB. It is safe for concurrent use.
type executor struct {
	settings  executorSettings
	snapshots *snapshot.Cache
	files     *source.Files
	tables    *lookup.Tables
	samples   *samples.Reader
	db        *duck.DB
	metrics   *metrics.Metrics
	logger    *slog.Logger
}

// pushing is one try to evaluate parts of a query, on one snapshot.
type pushing struct {
	*executor
	span     *snapshot.Range
	snap     catalog.Snapshot
	known    map[string]*lookup.Resolution // by selectorKey; of the snapshot
	resolved map[*parser.VectorSelector]*lookup.Resolution
	reads    map[*plan.Leaf]*sampleRead // of a remote store, that were planned ahead
	raw      []*sampleRead              // as reads, of the engine's selectors
}

// attempt returns a try on a snapshot of a time range.
func (x *executor) attempt(span *snapshot.Range, snap catalog.Snapshot) *pushing {
	return &pushing{executor: x, span: span, snap: snap, known: map[string]*lookup.Resolution{}}
}

// plan resolves the selectors and builds the plan.
func (p *pushing) plan(ctx context.Context, planned *plan.Query) (*plan.Plan, error) {
	p.resolved = map[*parser.VectorSelector]*lookup.Resolution{}
	told, byKey := map[*parser.VectorSelector]*plan.Resolution{}, map[string]*plan.Resolution{}
	var count, values int64
	for _, sel := range planned.Selectors() {
		mint, maxt := p.span.Clip(sel.MinT, sel.MaxT)
		k := selectorKey(mint, maxt, sel.Matchers)
		if p.known[k] == nil {
			m, err := p.tables.Match(ctx, p.snap, mint, maxt, sel.Matchers)
			if err != nil {
				return nil, err
			}
			if err := request.Found(ctx, m.Series, matchedLabels); err != nil {
				return nil, err
			}
			p.known[k] = m.Resolution()
		}
		if err := request.Selected(ctx, p.known[k].Series, resolvedLabels); err != nil {
			return nil, err
		}
		p.resolved[sel.Expr] = p.known[k]
		if byKey[k] == nil {
			byKey[k] = p.tell(p.known[k])
		}
		told[sel.Expr] = byKey[k]
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("plan a query: %w", err)
		}
		count, values = count+p.known[k].Samples, values+int64(len(p.known[k].Series)*planned.Steps())
	}
	planned.Bound(p.settings.maxRows(count, values))
	pl := planned.Build(told)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("plan a query: %w", err)
	}
	p.logger.Debug("plan a query", "tenant", tenant.From(ctx), "plan", pl)
	return pl, nil
}

func matchedLabels(s *lookup.Series) labels.Labels { return s.Labels }

func resolvedLabels(s *lookup.ResolvedSeries) labels.Labels { return s.Labels }

func selectorKey(mint, maxt int64, ms []*labels.Matcher) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d", mint, maxt)
	for _, m := range ms {
		fmt.Fprintf(&b, " %s", m)
	}
	return b.String()
}

// tell returns what the planner needs to know of a resolution.
func (p *pushing) tell(r *lookup.Resolution) *plan.Resolution {
	out := &plan.Resolution{Rows: r.Samples, Refused: refused(r), Starts: r.Starts}
	if out.Refused != "" {
		return out
	}
	out.Series = make([]plan.Series, len(r.Series))
	main := r.Largest()
	for i := range r.Series {
		out.Series[i] = plan.Series{ID: r.Series[i].ID, Labels: r.Series[i].Labels, Place: r.Series[i].Place(main)}
	}
	return out
}

// refused says why SQL cannot evaluate over a resolution's series, "" if it can.
func refused(r *lookup.Resolution) string {
	switch {
	case r.Hists:
		return "there are native histograms among the series"
	case !r.IdsAgree:
		return "an id stands for different series"
	case deletes(r) > maxDeletions:
		return fmt.Sprintf("more than %d deletions concern it", maxDeletions)
	default:
		return ""
	}
}

// maxDeletions is the number of deletions that a statement leaves out, each by a condition on every sample.
const maxDeletions = 32

// deletes counts the tombstones that select series of a resolution.
func deletes(r *lookup.Resolution) int {
	seen := map[int]bool{}
	for i := range r.Series {
		for _, k := range r.Series[i].Tombstones {
			seen[k] = true
		}
	}
	return len(seen)
}
