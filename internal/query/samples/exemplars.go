package samples

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/store/live"
)

// Exemplars returns the exemplars of a match, by series in the order of labels, each once,
// ascending by time.
func (s *Reader) Exemplars(ctx context.Context, m *lookup.Match) ([]exemplar.QueryResult, error) {
	r := &exemplarCollector{Collector: Collector{Match: m, reader: s}, found: make([][]exemplar.Exemplar, len(m.Series))}
	if err := r.segments(ctx); err != nil {
		return nil, err
	}
	if err := r.blocks(ctx); err != nil {
		return nil, err
	}
	out := make([]exemplar.QueryResult, 0, len(m.Series))
	add := func(lset labels.Labels, of ...[]exemplar.Exemplar) {
		if es := distinct(of...); len(es) > 0 {
			out = append(out, exemplar.QueryResult{SeriesLabels: lset, Exemplars: es})
		}
	}
	if m.Replicas != nil {
		for _, g := range m.Replicas.Groups {
			add(g.Labels, r.found[g.From:g.To]...)
		}
	} else {
		for i, es := range r.found {
			add(m.Series[i].Labels, es)
		}
	}
	slices.SortFunc(out, func(a, b exemplar.QueryResult) int { return labels.Compare(a.SeriesLabels, b.SeriesLabels) })
	return out, nil
}

// distinct returns the exemplars of the replicas of a series, each once, ascending by time.
// Replicas read the same exemplar at different times, unless the target gives it one: among
// several, an exemplar with equal labels and value counts once, at the earliest time.
func distinct(of ...[]exemplar.Exemplar) []exemplar.Exemplar {
	es := slices.Concat(of...)
	slices.SortFunc(es, compareExemplars)
	es = slices.CompactFunc(es, func(a, b exemplar.Exemplar) bool { return compareExemplars(a, b) == 0 })
	if len(of) == 1 {
		return es
	}
	type content struct {
		labels string
		value  float64
	}
	seen := map[content]bool{}
	return slices.DeleteFunc(es, func(e exemplar.Exemplar) bool {
		c := content{e.Labels.String(), e.Value}
		again := seen[c]
		seen[c] = !e.Labels.IsEmpty()
		return again
	})
}

func compareExemplars(a, b exemplar.Exemplar) int {
	return cmp.Or(cmp.Compare(a.Ts, b.Ts), cmp.Compare(a.Value, b.Value), labels.Compare(a.Labels, b.Labels))
}

// exemplarCollector reads exemplars as Collector reads samples.
type exemplarCollector struct {
	Collector
	found [][]exemplar.Exemplar // by series
}

// exemplarLists are the exemplars of a segment.
type exemplarLists struct {
	t      []int64 // ms
	v      []float64
	labels []string // encoded
}

// Bytes implements index.Sized.
func (e *exemplarLists) Bytes() int64 {
	n := int64(96 + 32*len(e.t))
	for _, l := range e.labels {
		n += int64(len(l))
	}
	return n
}

// segments reads the exemplars in segments.
func (r *exemplarCollector) segments(ctx context.Context) error {
	for i := range r.Objects {
		o, t := &r.Objects[i], r.Tables[i]
		if o.Footer.Meta != nil || len(r.Rows[i]) == 0 {
			continue
		}
		e, err := lists(ctx, r.reader, "exemplars", "exemplars of "+o.Series, o, t, func(c *segment.Columns) (e *exemplarLists, err error) {
			e = &exemplarLists{}
			if _, e.t, err = c.Times(segment.ColExTS, nil); err != nil {
				return nil, err
			}
			if _, e.v, err = c.Doubles(segment.ColExValue, nil); err != nil {
				return nil, err
			}
			if _, e.labels, err = c.Blobs(segment.ColExLabels, nil); err != nil {
				return nil, err
			}
			if n := t.TotalExemplars(); int64(len(e.t)) != n || int64(len(e.v)) != n || int64(len(e.labels)) != n {
				return nil, fmt.Errorf("%w: %d times, %d values, %d label sets of %d exemplars", segment.ErrFormat, len(e.t), len(e.v), len(e.labels), n)
			}
			return e, nil
		})
		if err != nil {
			return err
		}
		for _, x := range r.Rows[i] {
			first, n := t.Exemplars(int(x.N))
			lo, hi := between(e.t[first:first+n], r.MinT, r.MaxT)
			for j := first + int64(lo); j < first+int64(hi); j++ {
				if err := r.take(x.Series, i, e.t[j], e.v[j], e.labels[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// blocks reads the exemplars in blocks, which are few: one row group after the other.
func (r *exemplarCollector) blocks(ctx context.Context) error {
	var er block.ExemplarReader
	p := r.plan(ctx, block.ExemplarFiles, r.MinT, (*index.Table).Exemplars, nil)
	p.rows = 0
	return r.run(ctx, p, func(_ int, g *rowGroup) error {
		if _, err := er.Select(g.in, g.group, g.rows, r.MinT, r.MaxT); err != nil {
			return err
		}
		return er.Read(func(i int, t int64, v float64, text string) error {
			return r.take(g.members[i].Series, g.object, t, v, text)
		})
	})
}

// take adds one exemplar of a series in an object, unless it is deleted.
func (r *exemplarCollector) take(series int32, object int, t int64, v float64, text string) error {
	s := &r.Series[series]
	if live.Within(t, r.Deletions.Gone(nil, object, s.Tombstones)) {
		return nil
	}
	if err := r.hold(1); err != nil {
		return err
	}
	lset, err := segment.DecodeExemplarLabels([]byte(text))
	if err != nil {
		return r.Objects[object].Broken(fmt.Errorf("read exemplars of series %s: %w", s.Labels, err))
	}
	r.found[series] = append(r.found[series], exemplar.Exemplar{Labels: lset, Value: v, Ts: t, HasTs: true})
	return nil
}
