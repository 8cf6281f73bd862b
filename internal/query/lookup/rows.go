package lookup

import (
	"context"
	"fmt"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Series returns the series that match ms in the objects that overlap [mint, maxt] (ms), by their
// series tables alone: a series may have no sample in the range.
func (s *Tables) Series(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, ms []*labels.Matcher) ([]Series, error) {
	f := finder{limit: s.maxSeries}
	err := s.Each(ctx, snap, mint, maxt, ms, func(t *index.Table, rows []index.Range) error {
		_, err := f.add(t, rows, func(int) bool { return true })
		return err
	})
	return f.series, err
}

// Each calls visit with the series tables of the objects that overlap [mint, maxt] (ms) and their
// rows that match ms, if there are any. Rows of a block are those whose own times overlap the
// range; a segment's times are those of all of its rows. Rows are left out if one tombstone alone
// deletes all of their samples in the range; several tombstones are not considered together.
func (s *Tables) Each(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, ms []*labels.Matcher, visit func(t *index.Table, rows []index.Range) error) error {
	objs, _, err := s.Objects(ctx, snap, mint, maxt, ms)
	if err != nil {
		return err
	}
	loaded := make([]*index.Table, len(objs))
	if err := s.load(ctx, objs, loaded, func(int) bool { return true }); err != nil {
		return err
	}
	s.count(ctx, objs)
	for i, t := range loaded {
		o := &objs[i]
		rows, err := t.Select(ctx, ms)
		if err != nil {
			return err
		}
		if o.IsBlock() && (o.Footer.MinT < mint || o.Footer.MaxT > maxt) {
			rows = index.Keep(rows, func(row int) bool {
				from, upto := t.Times(row)
				return from <= maxt && upto >= mint
			})
		}
		for _, d := range snap.Tombstones {
			if len(rows) == 0 || !d.Covers(o.DeletesThrough) {
				continue
			}
			dms, err := d.LabelMatchers()
			if err != nil {
				return fmt.Errorf("read tombstone %s: %w", d.ID, err)
			}
			deleted, err := t.Select(ctx, dms)
			if err != nil {
				return err
			}
			rows = index.Without(rows, index.Keep(deleted, func(row int) bool {
				from, upto := t.Times(row)
				return from <= upto && d.MinT <= max(from, mint) && d.MaxT >= min(upto, maxt)
			}))
		}
		if len(rows) == 0 {
			continue
		}
		if err := visit(t, rows); err != nil {
			return err
		}
	}
	return nil
}
