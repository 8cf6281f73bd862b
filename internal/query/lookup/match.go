package lookup

import (
	"context"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/internal/store/recent"
)

// Scope is the objects that a selector reads.
type Scope struct {
	Objects   []source.Object // by rank, the lowest first; of a Match, those with rows
	Tables    []*index.Table  // by object
	Deletions live.Deletions  // of the objects
	Unread    int64           // ms: samples up to here may be missing, of objects that were left out because they end too early
	FromHead  bool            // there are no objects: the series have their samples
	HeadFrom  int64           // ms: samples from here on are those that the series have, not those of objects; 0: there are none
}

// Match is the series that match one of several lists of matchers, and their rows.
type Match struct {
	Scope
	MinT, MaxT int64    // ms, inclusive
	Series     []Series // distinct; their number is no order
	Rows       [][]Row  // by object, ascending; objects may share them, so nobody changes them

	Replicas *Replicas // nil: each series is shown as it is stored
	// Totals: series of delta temporality are shown as running totals. Samples before From (ms), of
	// any series, are there only for them.
	Totals *Totals

	order     []int32             // of the series by labels; nil: not known
	keepOrder func(order []int32) // for later matches; nil: it is known, or not to be kept
}

// Series is a series that matches.
type Series struct {
	Labels     labels.Labels
	Tombstones []int // the tombstones that match it, by their positions in the deletions

	Head *recent.Series // its samples that are from a head, if the scope says that there are some; nil: none
}

// LabelsOf returns the labels of a series.
func LabelsOf(s *Series) labels.Labels { return s.Labels }

// Row is a series of a Match, by its index, and the row N that it has in an object's series table.
type Row struct{ Series, N int32 }

// Match finds the series of a snapshot that match one of sets and may have samples in [mint, maxt]
// (ms, inclusive).
func (s *Tables) Match(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	all, unread, err := s.Objects(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	id := selectionKey(snap.Tenant, sets)
	selected := s.selections.get(id, len(snap.Segments)+len(snap.Blocks))
	objs, parts, unknown, found := selected.known(all, sets)
	m := &Match{Scope: Scope{Objects: objs, Unread: unread, Tables: make([]*index.Table, len(objs))}, MinT: mint, MaxT: maxt, Rows: make([][]Row, len(objs))}
	left := s.room(all)
	if left != ample { // whole tables that were there when the rows were matched may be gone
		for _, i := range s.held(objs, m.Tables, func(i int) bool { return parts[i] != nil && len(parts[i].rows) > 0 && parts[i].table == nil }) {
			parts[i] = nil
			unknown = append(unknown, i)
		}
	}
	s.metrics.CountLookups("selection", len(all)-len(unknown), len(unknown))
	remembered := true // all of the series
	if len(unknown) > 0 {
		if left == ample && len(unknown) <= freshBlocks {
			left = fresh
		}
		ranges, err := s.selectRows(ctx, m, unknown, sets, left)
		if err != nil {
			return nil, err
		}
		if s.selections.fits(ranges) {
			var bytes int64
			if found, bytes, err = selected.extend(objs, parts, unknown, m.Tables, ranges); err != nil {
				return nil, err
			}
			s.selections.resize(id, selected, bytes)
		} else {
			remembered = false
			found.limit = s.maxSeries + len(found.series)
			for k, i := range unknown {
				t := m.Tables[i]
				m.Rows[i], err = found.add(t, ranges[k], func(row int) bool {
					from, upto := t.Times(row)
					return from <= maxt && upto >= mint && hasSamples(t, row)
				})
				if err != nil {
					return nil, s.tooMany()
				}
			}
		}
	}
	for i, p := range parts {
		if p != nil && m.Tables[i] == nil {
			m.Tables[i] = p.table
		}
	}
	if err := s.load(ctx, objs, m.Tables, func(i int) bool { return parts[i] != nil && len(parts[i].rows) > 0 }); err != nil {
		return nil, err
	}
	for i, p := range parts {
		if p != nil {
			m.Rows[i] = p.overlapping(m.Tables[i], mint, maxt)
		}
	}
	s.count(ctx, all)
	// Leave out the objects without rows.
	kept := 0
	for i, rows := range m.Rows {
		if len(rows) > 0 {
			m.Objects[kept], m.Tables[kept], m.Rows[kept] = m.Objects[i], m.Tables[i], rows
			kept++
		}
	}
	m.Objects, m.Tables, m.Rows = m.Objects[:kept:kept], m.Tables[:kept:kept], m.Rows[:kept:kept]
	if m.Series = m.used(found.series); len(m.Series) > s.maxSeries {
		return nil, s.tooMany()
	}
	if n := len(m.Series); remembered && n >= orderedFrom && n == len(found.series) {
		if len(found.order) == n {
			m.order = found.order
		} else {
			m.keepOrder = func(order []int32) { s.selections.resize(id, selected, selected.keepOrder(order)) }
		}
	}
	return m, m.cover(snap.Tombstones)
}

func (s *Tables) tooMany() error { return request.TooManySeries(s.maxSeries, s.maxSeries+1) }

// Exemplars is Match for series that may have exemplars.
func (s *Tables) Exemplars(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	all, unread, err := s.Objects(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	var objs []source.Object
	var which []int
	for _, o := range all {
		if o.Footer.HasExemplars {
			which = append(which, len(objs))
			objs = append(objs, o)
		}
	}
	m := &Match{Scope: Scope{Objects: objs, Unread: unread, Tables: make([]*index.Table, len(objs))}, MinT: mint, MaxT: maxt, Rows: make([][]Row, len(objs))}
	ranges, err := s.selectRows(ctx, m, which, sets, ample)
	if err != nil {
		return nil, err
	}
	f := finder{limit: s.maxSeries}
	for i, t := range m.Tables {
		m.Rows[i], err = f.add(t, ranges[i], func(row int) bool {
			from, upto := t.Times(row)
			_, n := t.Exemplars(row)
			return from <= maxt && upto >= mint && n > 0
		})
		if err != nil {
			return nil, err
		}
	}
	s.count(ctx, objs)
	m.Series = f.series
	return m, m.cover(snap.Tombstones)
}

// selectRows returns the rows of some objects that match one of sets, and sets their series tables.
// left is the room for the tables of all objects; unless it is ample, tables that are not in the
// cache may be read for the rows alone.
func (s *Tables) selectRows(ctx context.Context, m *Match, which []int, sets [][]*labels.Matcher, left room) ([][]index.Range, error) {
	wanted := make([]bool, len(m.Objects))
	for _, i := range which {
		wanted[i] = true
	}
	if left != ample {
		rest := s.held(m.Objects, m.Tables, func(i int) bool { return wanted[i] })
		switch left {
		case fresh:
			rest = slices.DeleteFunc(rest, func(i int) bool { return !isFresh(&m.Objects[i]) || s.first.Enough(m.Objects[i].Series, 1) })
		case limited:
			atOnce := make([]bool, len(m.Objects))
			for i, w := range wanted {
				atOnce[i] = w && s.demand.whole(m.Objects[i].Footer.Number)
			}
			rest = slices.DeleteFunc(rest, func(i int) bool { return atOnce[i] || s.partial.Enough(m.Objects[i].Series, 1) })
		}
		if err := s.files.Each(ctx, len(rest), func(ctx context.Context, k int) error {
			o := &m.Objects[rest[k]]
			some := index.Some{Seed: s.seed, Sets: sets, Most: int(o.Footer.Rows / someShare)}
			if known := s.recent.Get(o.Series, o.Size); known != nil {
				t, ok, err := some.Known(ctx, known)
				if m.Tables[rest[k]] = t; ok || err != nil {
					return err
				}
			}
			t, err := s.read(ctx, o, func(in source.Reader, size int64) (*index.Table, error) {
				if o.Footer.Meta == nil {
					return some.Segment(ctx, in, size)
				}
				return some.Block(ctx, in, size, o.Footer.Meta)
			})
			m.Tables[rest[k]] = t
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := s.load(ctx, m.Objects, m.Tables, func(i int) bool { return wanted[i] }); err != nil {
		return nil, err
	}
	out := make([][]index.Range, len(which))
	for k, i := range which {
		if m.Tables[i].Partial() {
			out[k] = m.Tables[i].KnownRows()
			continue
		}
		for _, ms := range sets {
			rows, err := m.Tables[i].Select(ctx, ms)
			if err != nil {
				return nil, err
			}
			if len(sets) == 1 {
				out[k] = rows
			} else {
				out[k] = index.Union(out[k], rows)
			}
		}
	}
	return out, nil
}

// used returns those of the series that have rows in the match. It changes the rows to their
// numbers, in memory of its own.
func (m *Match) used(series []Series) []Series {
	number, n := make([]int32, len(series)), 0 // 0: not used, otherwise the number + 1
	var last []Row
	for _, rows := range m.Rows {
		if len(rows) == 0 || len(rows) == len(last) && &rows[0] == &last[0] {
			continue // neighbours may share their rows
		}
		for _, x := range rows {
			if number[x.Series] == 0 {
				n++
				number[x.Series] = int32(n)
			}
		}
		last = rows
	}
	if n == len(series) {
		return series
	}
	out := make([]Series, n)
	for i, k := range number {
		if k > 0 {
			out[k-1] = series[i]
		}
	}
	for i, rows := range m.Rows {
		m.Rows[i] = make([]Row, len(rows))
		for j, x := range rows {
			m.Rows[i][j] = Row{number[x.Series] - 1, x.N}
		}
	}
	return out
}

// cover sets what tombstones delete of the match.
func (m *Match) cover(tombstones []catalog.Tombstone) (err error) {
	if len(tombstones) == 0 {
		return nil
	}
	through := make([]ulid.ULID, len(m.Objects))
	for i := range m.Objects {
		through[i] = m.Objects[i].DeletesThrough
	}
	if m.Deletions, err = live.NewDeletions(tombstones, through); err != nil {
		return err
	}
	m.Series = slices.Clone(m.Series)
	for i := range m.Series {
		m.Series[i].Tombstones = m.Deletions.Matching(nil, m.Series[i].Labels)
	}
	return nil
}
