package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// federatedPaths are the routes that answer from several tenants.
var federatedPaths = []string{
	apiPath + queryPath, apiPath + queryRangePath, apiPath + "/query_exemplars", apiPath + "/series", apiPath + "/labels", apiPath + "/label/:name/values",
}

// readAtOnce is the number of tenants from which one selector reads at once.
const readAtOnce = 8

// originalLabel has the value that a series itself has for tenant.Label, as in Mimir.
const originalLabel = "original_" + tenant.Label

// federatedQuerier reads from the tenants of its contexts, as Mimir's federation of tenants does:
// each series has the label tenant.Label, by which selectors choose tenants. A context with one
// tenant reads from that.
type federatedQuerier struct {
	storage.Querier // of one tenant
	open            func() (storage.Querier, error)
	opened          map[string]storage.Querier // of several, by tenant: a querier reads from one snapshot
}

// Close implements storage.LabelQuerier.
func (q *federatedQuerier) Close() error {
	err := q.Querier.Close()
	for _, one := range q.opened {
		if failed := one.Close(); err == nil {
			err = failed
		}
	}
	return err
}

// each calls fn, at once, with each tenant that matchers of tenant.Label choose, its number, its
// querier and the other matchers.
func (q *federatedQuerier) each(ctx context.Context, ms []*labels.Matcher, fn func(ctx context.Context, id string, i int, of storage.Querier, ms []*labels.Matcher) error) error {
	chosen, others := choose(tenant.All(ctx), ms)
	if q.opened == nil {
		q.opened = map[string]storage.Querier{}
	}
	for _, id := range chosen {
		if q.opened[id] == nil {
			one, err := q.open()
			if err != nil {
				return err
			}
			q.opened[id] = one
		}
	}
	g := errgroup.Group{} // its context would end before the samples are read
	g.SetLimit(readAtOnce)
	for i, id := range chosen {
		of := q.opened[id]
		g.Go(telemetry.Guard(func() error {
			if err := fn(tenant.With(ctx, id), id, i, of, others); err != nil {
				return fmt.Errorf("tenant %s: %w", id, err)
			}
			return nil
		}))
	}
	return g.Wait()
}

// choose returns the tenants that all matchers of tenant.Label match, and the other matchers.
func choose(all []string, ms []*labels.Matcher) (chosen []string, others []*labels.Matcher) {
	chosen = slices.Clone(all)
	for _, m := range ms {
		if m.Name == tenant.Label {
			chosen = slices.DeleteFunc(chosen, func(id string) bool { return !m.Matches(id) })
		} else {
			if m.Name == originalLabel {
				m = labels.MustNewMatcher(m.Type, tenant.Label, m.Value)
			}
			others = append(others, m)
		}
	}
	return chosen, others
}

// owned returns the labels of a tenant's series among those of several tenants.
func owned(ls labels.Labels, id string) labels.Labels {
	b := labels.NewBuilder(ls)
	if own := ls.Get(tenant.Label); own != "" {
		b.Set(originalLabel, own)
	}
	return b.Set(tenant.Label, id).Labels()
}

// Select implements storage.Querier.
func (q *federatedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if !tenant.Several(ctx) {
		return q.Querier.Select(ctx, sorted, hints, ms...)
	}
	sets := make([][]storage.Series, len(tenant.All(ctx)))
	notes := make([]annotations.Annotations, len(sets))
	err := q.each(ctx, ms, func(ctx context.Context, id string, i int, of storage.Querier, ms []*labels.Matcher) error {
		set := of.Select(ctx, false, hints, ms...)
		bytes := int64(0)
		for set.Next() {
			ls := owned(set.At().Labels(), id)
			bytes += int64(ls.ByteSize())
			sets[i] = append(sets[i], &storage.SeriesEntry{Lset: ls, SampleIteratorFn: set.At().Iterator})
		}
		notes[i] = set.Warnings()
		if err := set.Err(); err != nil {
			return err
		}
		return memory.Of(ctx).Charge(bytes)
	})
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	all := &seriesOf{list: slices.Concat(sets...), at: -1}
	slices.SortFunc(all.list, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	for _, n := range notes {
		all.notes.Merge(n)
	}
	return all
}

// seriesOf is a storage.SeriesSet of series in memory.
type seriesOf struct {
	list  []storage.Series
	at    int
	notes annotations.Annotations
}

func (s *seriesOf) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *seriesOf) At() storage.Series                { return s.list[s.at] }
func (s *seriesOf) Err() error                        { return nil }
func (s *seriesOf) Warnings() annotations.Annotations { return s.notes }

// LabelValues implements storage.LabelQuerier.
func (q *federatedQuerier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if !tenant.Several(ctx) {
		return q.Querier.LabelValues(ctx, name, hints, ms...)
	}
	if name == tenant.Label {
		chosen, _ := choose(tenant.All(ctx), ms)
		return chosen, nil, nil
	}
	if name == originalLabel {
		name = tenant.Label
	}
	return q.union(ctx, ms, nil, func(ctx context.Context, of storage.Querier, ms []*labels.Matcher) ([]string, annotations.Annotations, error) {
		return of.LabelValues(ctx, name, hints, ms...)
	})
}

// LabelNames implements storage.LabelQuerier.
func (q *federatedQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if !tenant.Several(ctx) {
		return q.Querier.LabelNames(ctx, hints, ms...)
	}
	return q.union(ctx, ms, []string{tenant.Label}, func(ctx context.Context, of storage.Querier, ms []*labels.Matcher) ([]string, annotations.Annotations, error) {
		names, notes, err := of.LabelNames(ctx, hints, ms...)
		if slices.Contains(names, tenant.Label) {
			names = append(names, originalLabel)
		}
		return names, notes, err
	})
}

// union returns the strings of all chosen tenants, sorted, with the given ones if there are any.
func (q *federatedQuerier) union(ctx context.Context, ms []*labels.Matcher, also []string, of func(context.Context, storage.Querier, []*labels.Matcher) ([]string, annotations.Annotations, error)) ([]string, annotations.Annotations, error) {
	found := make([][]string, len(tenant.All(ctx)))
	notes := make([]annotations.Annotations, len(found))
	err := q.each(ctx, ms, func(ctx context.Context, _ string, i int, one storage.Querier, ms []*labels.Matcher) (err error) {
		found[i], notes[i], err = of(ctx, one, ms)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	out, all := slices.Concat(found...), annotations.Annotations{}
	if len(out) > 0 {
		out = append(out, also...)
	}
	for _, n := range notes {
		all.Merge(n)
	}
	slices.Sort(out)
	return slices.Compact(out), all, nil
}

// federatedExemplars is federatedQuerier for exemplars.
type federatedExemplars struct {
	ctx  context.Context
	open func(ctx context.Context) (storage.ExemplarQuerier, error)
}

// Select implements storage.ExemplarQuerier.
func (q *federatedExemplars) Select(start, end int64, sets ...[]*labels.Matcher) (out []exemplar.QueryResult, err error) {
	out = []exemplar.QueryResult{}
	for _, id := range tenant.All(q.ctx) {
		var of [][]*labels.Matcher
		for _, ms := range sets {
			if chosen, others := choose([]string{id}, ms); len(chosen) > 0 {
				of = append(of, others)
			}
		}
		if len(of) == 0 {
			continue
		}
		one, err := q.open(tenant.With(q.ctx, id))
		if err != nil {
			return nil, err
		}
		found, err := one.Select(start, end, of...)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w", id, err)
		}
		for _, r := range found {
			r.SeriesLabels = owned(r.SeriesLabels, id)
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b exemplar.QueryResult) int { return labels.Compare(a.SeriesLabels, b.SeriesLabels) })
	return out, nil
}
