package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/tenant"
)

type exemplarQuerier struct {
	ctx   context.Context
	stage *Stage
}

// ExemplarQuerier implements storage.ExemplarQueryable. ctx names the tenant and bounds the querier's reads.
func (s *Stage) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	return &exemplarQuerier{ctx, s}, nil
}

// Select implements storage.ExemplarQuerier: the exemplars of [start, end] (ms) of the series that match one of sets, by series in the order
// of labels, each once, ascending by time.
func (q *exemplarQuerier) Select(start, end int64, sets ...[]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	start, end = max(start, key.MinTime), min(end, key.MaxTime)
	if start > end || len(sets) == 0 {
		return nil, nil
	}
	err = q.stage.measure("exemplars", func() error {
		out, err = q.read(start, end, sets)
		return err
	})
	return out, err
}

func (q *exemplarQuerier) read(start, end int64, sets [][]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	s := q.stage
	take := func(ctx context.Context, _ bool) (catalog.Snapshot, error) {
		return s.snapshot(ctx, tenant.From(ctx), start, end)
	}
	err = s.replanning(q.ctx, take, func(snap catalog.Snapshot) error {
		sel, err := s.locate(q.ctx, snap, start, end, sets...)
		if err != nil {
			return err
		}
		sel.objs = slices.DeleteFunc(sel.objs, func(l located) bool { return !l.footer.HasExemplars })
		return s.with(q.ctx, sel, func(src *source) error {
			pred, err := s.union(q.ctx, src, sets)
			if err != nil || pred.never {
				return err
			}
			c := newExemplarCollector(newScan(src, pred, exemplars), s, start, end)
			if c.deletions, err = newDeletions(snap.Tombstones, src.objs); err != nil {
				return err
			}
			if err := s.db.Each(q.ctx, c.scan.String(), c.scan.types, c.chunk); err != nil {
				return err
			}
			if err := s.readBlockExemplars(q.ctx, c); err != nil {
				return err
			}
			out = c.finish()
			return nil
		})
	})
	return out, err
}

// union is the predicate of the series that match one of sets.
func (s *Stage) union(ctx context.Context, src *source, sets [][]*labels.Matcher) (predicate, error) {
	var alts []string
	for _, ms := range sets {
		p, err := s.predicate(ctx, src, ms)
		if err != nil {
			return p, err
		}
		switch {
		case p.never:
		case len(p.conds) == 0:
			return predicate{}, nil
		default:
			alts = append(alts, "("+strings.Join(p.conds, " AND ")+")")
		}
	}
	if len(alts) == 0 {
		return predicate{never: true}, nil
	}
	return predicate{conds: []string{"(" + strings.Join(alts, " OR ") + ")"}}, nil
}

// exemplarCollector gathers exemplars by series. It finds series and time ranges as samples do.
type exemplarCollector struct {
	*collector
	found map[*memSeries][]exemplar.Exemplar
}

func newExemplarCollector(scan *scan, s *Stage, start, end int64) *exemplarCollector {
	return &exemplarCollector{newCollector(scan, &s.settings, s.seed, start, end), map[*memSeries][]exemplar.Exemplar{}}
}

func (c *exemplarCollector) chunk(n int, cols []duck.Vector) error {
	c.identity.chunk(n, cols)
	spans, total := c.spans(cols, c.scan.exTS)
	if c.size += total; c.size > c.settings.MaxSamples {
		return c.settings.tooManySamples()
	}
	inBlock := c.inBlock(cols)
	rows := make([]*memSeries, n)
	keep := func(i int) bool { return spans != nil && spans[i].n > 0 || inBlock != nil && inBlock(i) }
	if err := c.lookup(rows, cols, keep); err != nil {
		return err
	}
	c.placeExemplars(rows, cols)
	if total == 0 {
		return nil
	}
	return c.lists(rows, cols, spans)
}

// lists takes the exemplars that rows of segments carry.
func (c *exemplarCollector) lists(rows []*memSeries, cols []duck.Vector, spans []span) error {
	objects := cols[colFileIndex].Uint64s()
	tsLists, elems := cols[c.scan.exTS].List()
	times := elems.Int64s()
	valueLists, elems := cols[c.scan.exValue].List()
	values := elems.Float64s()
	labelLists, elems := cols[c.scan.exLabels].List()
	texts := elems.Strings()
	for i, sp := range spans {
		for j := range sp.n {
			at := sp.from - int(tsLists[i].Offset) + j // position in the row's lists
			text := &texts[int(labelLists[i].Offset)+at]
			if err := c.add(rows[i], int(objects[i]), times[sp.from+j], values[int(valueLists[i].Offset)+at], text); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds one exemplar of a series in an object, unless it is deleted. The time is in microseconds.
func (c *exemplarCollector) add(s *memSeries, object int, micros int64, v float64, text *duck.String) error {
	t := micros / microsPerMilli
	if isDeleted(t, c.deletions.gone(object, s)) {
		return nil
	}
	lset, err := segment.DecodeExemplarLabels(text.Bytes())
	if err != nil {
		return fmt.Errorf("read exemplars of series %s: %w", s.labels, err)
	}
	c.found[s] = append(c.found[s], exemplar.Exemplar{Labels: lset, Value: v, Ts: t, HasTs: true})
	return nil
}

func (c *exemplarCollector) finish() []exemplar.QueryResult {
	slices.SortFunc(c.series, func(a, b *memSeries) int { return labels.Compare(a.labels, b.labels) })
	out := make([]exemplar.QueryResult, 0, len(c.series))
	for _, s := range c.series {
		es := c.found[s]
		if len(es) == 0 {
			continue
		}
		slices.SortFunc(es, compareExemplars)
		es = slices.CompactFunc(es, func(a, b exemplar.Exemplar) bool { return compareExemplars(a, b) == 0 })
		out = append(out, exemplar.QueryResult{SeriesLabels: s.labels, Exemplars: es})
	}
	return out
}

func compareExemplars(a, b exemplar.Exemplar) int {
	return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(a.Value, b.Value), labels.Compare(a.Labels, b.Labels))
}
