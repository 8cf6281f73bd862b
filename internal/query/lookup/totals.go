package lookup

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/replica"
)

// Totals say how running totals of a match are shown.
type Totals struct {
	From int64 // ms: the first sample that is shown
}

// totalsReach is how far before a range (ms) points are read for running totals. A counter that
// began earlier is taken for one that has counted much. It may not be longer than the range of a
// wide snapshot.
const totalsReach = replica.Around

// MatchTotals is Match for functions that read running totals. If series of delta temporality
// match, the result has Totals, and samples from totalsReach before the range on. The snapshot must
// have them if wide is true, and otherwise the error is request.ErrNarrow, as for Match.
func (c *Chooser) MatchTotals(ctx context.Context, snap catalog.Snapshot, wide bool, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	m, err := c.Match(ctx, snap, wide, mint, maxt, sets...)
	switch {
	case err != nil || !m.HasDeltas():
		return m, err
	case !wide:
		return nil, request.ErrNarrow
	}
	if m.Replicas == nil { // otherwise the match is wider already
		if m, err = c.Tables.Match(ctx, snap, mint-totalsReach, maxt, sets...); err != nil {
			return nil, err
		}
	}
	m.Totals = &Totals{From: mint}
	return m, nil
}

// HasDeltas reports whether a series has delta temporality. Objects without the label have none,
// which costs a comparison for each.
func (m *Match) HasDeltas() bool {
	return slices.ContainsFunc(m.Objects, named(series.TemporalityLabel)) &&
		slices.ContainsFunc(m.Series, func(s Series) bool { return series.IsDelta(s.Labels) })
}
