package query

import (
	"context"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// matched is the series that match one of several lists of matchers, and where the objects have them.
type matched struct {
	selection
	resolver
	mint, maxt int64          // ms, inclusive
	tables     []*index.Table // by object
	deletions  live.Deletions
}

// match finds the series of a snapshot that match one of sets and may have samples in [mint, maxt] (ms, inclusive).
func (s *Stage) match(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*matched, error) {
	sel, err := s.locate(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	m := &matched{selection: sel, mint: mint, maxt: maxt}
	return m, m.find(ctx, s, snap, sampled, sets)
}

// find evaluates matchers on the series tables of the objects, and keeps the rows for which keep is true and that overlap the range.
func (m *matched) find(ctx context.Context, s *Stage, snap catalog.Snapshot, keep func(t *index.Table, row int) bool, sets [][]*labels.Matcher) (err error) {
	through := make([]ulid.ULID, len(m.objs))
	for i := range m.objs {
		through[i] = m.objs[i].DeletesThrough
	}
	if m.deletions, err = live.NewDeletions(snap.Tombstones, through); err != nil {
		return err
	}
	m.resolver = resolver{settings: &s.settings, deletions: &m.deletions}
	if m.tables, err = s.tables(ctx, m.objs); err != nil {
		return err
	}
	s.consulted(ctx, m.objs)
	for _, t := range m.tables {
		rows, err := selectAny(ctx, t, sets)
		if err != nil {
			return err
		}
		err = m.add(t, rows, func(row int) bool {
			from, upto := t.Times(row)
			return from <= m.maxt && upto >= m.mint && keep(t, row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// selectAny returns the rows that match one of sets.
func selectAny(ctx context.Context, t *index.Table, sets [][]*labels.Matcher) (rows []index.Range, err error) {
	for _, ms := range sets {
		more, err := t.Select(ctx, ms)
		if err != nil {
			return nil, err
		}
		rows = index.Union(rows, more)
	}
	return rows, nil
}

// sampled says that a row has samples.
func sampled(t *index.Table, row int) bool {
	_, floats := t.Floats(row)
	_, hists := t.Hists(row)
	return floats+hists > 0
}

// consulted counts the series tables that a read looks at, cached or not.
func (s *Stage) consulted(ctx context.Context, objs []source.Object) {
	if len(objs) == 0 {
		return
	}
	rows := int64(0)
	for i := range objs {
		rows += objs[i].Footer.Rows
	}
	s.metrics.Count(ctx, seriesTotals(objs))
	s.metrics.Rows.Add(float64(rows))
}

// seriesTotals says what a look at the series tables of objects takes.
func seriesTotals(objs []source.Object) (t request.Totals) {
	for i := range objs {
		n := objs[i].Size
		if m := objs[i].Footer.Meta; m != nil {
			t.Blocks++
			if f := m.File(block.SeriesFile); f != nil {
				n = f.Bytes
			}
		} else {
			t.Segments++
		}
		t.Bytes.Considered, t.Bytes.Read = t.Bytes.Considered+n, t.Bytes.Read+n
	}
	return t
}
