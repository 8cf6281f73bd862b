package query

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/tenant"
)

// pushing is one try to evaluate parts of a query, on one snapshot.
type pushing struct {
	stage    *Stage
	querier  *querier
	snap     catalog.Snapshot
	known    map[string]*resolution // by selectorKey; of the snapshot
	resolved map[*parser.VectorSelector]*resolution
	reads    map[*plan.Leaf]*sampleRead // of a remote store, that were planned ahead
	raw      []*sampleRead              // as reads, of the engine's selectors
}

// plan resolves the selectors and builds the plan.
func (p *pushing) plan(ctx context.Context, planned *plan.Query) (*plan.Plan, error) {
	if p.known == nil {
		p.known = map[string]*resolution{}
	}
	p.resolved = map[*parser.VectorSelector]*resolution{}
	told, byKey := map[*parser.VectorSelector]*plan.Resolution{}, map[string]*plan.Resolution{}
	var samples, values int64
	for _, sel := range planned.Selectors() {
		mint, maxt := p.querier.Clip(sel.MinT, sel.MaxT)
		k := selectorKey(mint, maxt, sel.Matchers)
		if p.known[k] == nil {
			r, err := p.querier.resolve(ctx, p.snap, mint, maxt, sel.Matchers)
			if err != nil {
				return nil, err
			}
			if err := request.Found(ctx, r.series, resolvedLabels); err != nil {
				return nil, err
			}
			p.known[k] = r
		}
		if err := request.Selected(ctx, p.known[k].series, resolvedLabels); err != nil {
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
		samples, values = samples+p.known[k].rows, values+int64(len(p.known[k].series)*planned.Steps())
	}
	planned.Bound(p.stage.settings.maxRows(samples, values))
	pl := planned.Build(told)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("plan a query: %w", err)
	}
	p.stage.logger.Debug("plan a query", "tenant", tenant.From(ctx), "plan", pl)
	return pl, nil
}

func resolvedLabels(s *resolvedSeries) labels.Labels { return s.labels }

func selectorKey(mint, maxt int64, ms []*labels.Matcher) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d", mint, maxt)
	for _, m := range ms {
		fmt.Fprintf(&b, " %s", m)
	}
	return b.String()
}

// tell returns what the planner needs to know of a resolution.
func (p *pushing) tell(r *resolution) *plan.Resolution {
	out := &plan.Resolution{Rows: r.rows, Refused: refused(r), Starts: r.starts}
	if out.Refused != "" {
		return out
	}
	out.Series = make([]plan.Series, len(r.series))
	main := r.largest()
	for i := range r.series {
		out.Series[i] = plan.Series{ID: r.series[i].id, Labels: r.series[i].labels, Place: r.series[i].place(main)}
	}
	return out
}

// largest is the object with most samples of a resolution. Where its series lie there is how they lie elsewhere: objects are sorted alike.
func (r *resolution) largest() int {
	samples := make([]int64, len(r.objs))
	for i := range r.series {
		for _, p := range r.series[i].at {
			samples[p.object] += p.n
		}
	}
	most := 0
	for i, n := range samples {
		if n > samples[most] {
			most = i
		}
	}
	return most
}

// place orders series as an object has them, from 1 on; after those that it has come those that it has not.
func (s *resolvedSeries) place(object int) int64 {
	for _, p := range s.at {
		if p.object == object {
			return 1 + p.row
		}
	}
	return math.MaxInt64
}

// refused says why SQL cannot evaluate over a resolution's series, "" if it can.
func refused(r *resolution) string {
	switch {
	case r.hists:
		return "there are native histograms among the series"
	case !r.idsAgree:
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
func deletes(r *resolution) int {
	seen := map[int]bool{}
	for i := range r.series {
		for _, k := range r.series[i].tombs {
			seen[k] = true
		}
	}
	return len(seen)
}
