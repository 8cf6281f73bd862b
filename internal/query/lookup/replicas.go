package lookup

import (
	"cmp"
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/replica"
)

// Replicas say which series of a match are those of replicas, of which one is shown.
type Replicas struct {
	Rule       replica.Rule
	MinT, MaxT int64 // ms, inclusive: samples that are shown. The match has more, on which the choice depends.
	Groups     []Group
}

// Group is the series that are shown as one: those of the match at [From, To), in the order of
// their replicas. Most groups of a match without replicas have one.
type Group struct {
	Labels   labels.Labels // as shown
	From, To int
}

// A Chooser finds series as Tables does, but shows replicas as one series.
type Chooser struct {
	*Tables
	Rule func(ctx context.Context) replica.Rule // of the context's tenant
}

// Match is Tables.Match. If series of replicas match, the result has them as Replicas, and samples
// of a range that is wider by replica.Around. The snapshot must have that range if wide is true;
// otherwise the error is request.ErrNarrow if it is needed. Matchers of the replicas' label ask for
// the series as they are stored.
func (c *Chooser) Match(ctx context.Context, snap catalog.Snapshot, wide bool, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	m, err := c.Tables.Match(ctx, snap, mint, maxt, sets...)
	rule := c.Rule(ctx).For(sets...)
	switch {
	case err != nil || !m.hasReplicas(rule):
		return m, err
	case !wide:
		return nil, request.ErrNarrow
	}
	if m, err = c.Tables.Match(ctx, snap, mint-replica.Around, maxt+replica.Around, sets...); err != nil {
		return nil, err
	}
	m.group(rule)
	m.Replicas.MinT, m.Replicas.MaxT = mint, maxt
	return m, nil
}

// MayHaveReplicas reports whether Match may have Replicas: whether an object has the labels of
// replicas.
func (c *Chooser) MayHaveReplicas(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (bool, error) {
	rule := c.Rule(ctx).For(sets...)
	if !rule.On() {
		return false, nil
	}
	objs, _, err := c.Objects(ctx, snap, mint, maxt, sets...)
	return err == nil && slices.ContainsFunc(objs, named(rule.Replica, rule.Cluster)), err
}

// Exemplars is Tables.Exemplars, with Replicas.
func (c *Chooser) Exemplars(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	m, err := c.Tables.Exemplars(ctx, snap, mint, maxt, sets...)
	rule := c.Rule(ctx).For(sets...)
	if err != nil || !m.hasReplicas(rule) {
		return m, err
	}
	m.group(rule)
	m.Replicas.MinT, m.Replicas.MaxT = mint, maxt
	return m, nil
}

// Series is Tables.Series. Replicas are one series.
func (c *Chooser) Series(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, ms []*labels.Matcher) ([]Series, error) {
	found, err := c.Tables.Series(ctx, snap, mint, maxt, ms)
	rule := c.Rule(ctx).For(ms)
	if err != nil || !slices.ContainsFunc(found, func(s Series) bool { return rule.Has(s.Labels) }) {
		return found, err
	}
	groups, _ := grouped(found, rule)
	out := make([]Series, len(groups))
	for i, g := range groups {
		out[i].Labels = g.Labels
	}
	return out, nil
}

// ShownNames returns the names of the labels that rows of a series table have, sorted: without the
// replicas' label, unless it is shown of one of them.
func ShownNames(ctx context.Context, t *index.Table, rows []index.Range, rule replica.Rule) ([]string, error) {
	names := t.Used(rows)
	i, found := slices.BinarySearch(names, rule.Replica)
	if !rule.On() || !found {
		return names, nil
	}
	apart, err := t.Select(ctx, []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchNotEqual, rule.Replica, ""), labels.MustNewMatcher(labels.MatchEqual, rule.Cluster, ""),
	})
	if err != nil || len(index.Without(rows, index.Without(rows, apart))) > 0 {
		return names, err
	}
	return slices.Delete(names, i, i+1), nil
}

// hasReplicas reports whether a series is that of a replica. Objects without the labels have none,
// which costs a comparison for each.
func (m *Match) hasReplicas(rule replica.Rule) bool {
	if !rule.On() || !slices.ContainsFunc(m.Objects, named(rule.Replica, rule.Cluster)) {
		return false
	}
	return slices.ContainsFunc(m.Series, func(s Series) bool { return rule.Has(s.Labels) })
}

// named returns a function that reports whether an object has all of some labels. Of objects with
// equal label names in a row it looks at the first.
func named(names ...string) func(o source.Object) bool {
	var last *source.Footer
	var answer bool
	return func(o source.Object) bool {
		if last == nil || last.Names() != o.Footer.Names() {
			last, answer = o.Footer, !slices.ContainsFunc(names, func(n string) bool { return !o.Footer.HasLabel(n) })
		}
		return answer
	}
}

// group sets the replicas of a match, and orders its series by them.
func (m *Match) group(rule replica.Rule) {
	groups, order := grouped(m.Series, rule)
	series, number := make([]Series, len(order)), make([]int32, len(order))
	for to, from := range order {
		series[to], number[from] = m.Series[from], int32(to)
	}
	m.Series, m.Replicas = series, &Replicas{Rule: rule, Groups: groups}
	for i, rows := range m.Rows {
		m.Rows[i] = make([]Row, len(rows)) // what the match had may be shared
		for k, x := range rows {
			m.Rows[i][k] = Row{number[x.Series], x.N}
		}
	}
}

// grouped returns the groups of some series, and these in the order of the groups. A series without
// the replicas' label, from a time before there were replicas, is the first of those that are shown
// as it is.
func grouped(series []Series, rule replica.Rule) (groups []Group, order []int) {
	byLabels := make(map[string]int, len(series))
	of := make([]int, len(series)) // group by series
	var text []byte
	for i := range series {
		shown := series[i].Labels
		if rule.Has(shown) {
			shown = rule.Shown(shown)
		}
		text = shown.Bytes(text)
		g, known := byLabels[string(text)]
		if !known {
			g = len(groups)
			byLabels[string(text)] = g
			groups = append(groups, Group{Labels: shown})
		}
		of[i] = g
	}
	order = make([]int, len(series))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(of[a], of[b]), cmp.Compare(series[a].Labels.Get(rule.Replica), series[b].Labels.Get(rule.Replica)))
	})
	for to, i := range order {
		g := &groups[of[i]]
		if g.To == 0 {
			g.From = to
		}
		g.To = to + 1
	}
	return groups, order
}
