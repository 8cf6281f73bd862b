package lookup

import (
	"context"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Scope is the objects that a selector reads.
type Scope struct {
	Objects   []source.Object // by rank, the lowest first
	Tables    []*index.Table  // by object
	Deletions live.Deletions  // of the objects
	Unread    int64           // ms: samples up to here may be missing, of objects that were left out because they end too early
}

// Match is the series that match one of several lists of matchers, and their rows.
type Match struct {
	Scope
	MinT, MaxT int64    // ms, inclusive
	Series     []Series // distinct, in the order of their discovery
	Rows       [][]Row  // by object, ascending
}

// Series is a series that matches.
type Series struct {
	Labels     labels.Labels
	Tombstones []int // the tombstones that match it, by their positions in the deletions
}

// LabelsOf returns the labels of a series.
func LabelsOf(s *Series) labels.Labels { return s.Labels }

// N is a series' row of an object's series table.
type Row struct{ Series, N int32 }

// Match finds the series of a snapshot that match one of sets and may have samples in [mint, maxt]
// (ms, inclusive).
func (s *Tables) Match(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	objs, unread, err := s.Objects(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	return s.find(ctx, snap, objs, unread, mint, maxt, sets, func(t *index.Table, row int) bool {
		_, floats := t.Floats(row)
		_, hists := t.Hists(row)
		return floats+hists > 0
	})
}

// Exemplars is match for series that may have exemplars.
func (s *Tables) Exemplars(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (*Match, error) {
	all, unread, err := s.Objects(ctx, snap, mint, maxt, sets...)
	if err != nil {
		return nil, err
	}
	var objs []source.Object
	for _, o := range all {
		if o.Footer.HasExemplars {
			objs = append(objs, o)
		}
	}
	return s.find(ctx, snap, objs, unread, mint, maxt, sets, func(t *index.Table, row int) bool {
		_, n := t.Exemplars(row)
		return n > 0
	})
}

// find evaluates matchers on the series tables of objects, and takes the rows for which keep is
// true and that overlap the range.
func (s *Tables) find(ctx context.Context, snap catalog.Snapshot, objs []source.Object, unread, mint, maxt int64, sets [][]*labels.Matcher, keep func(t *index.Table, row int) bool) (m *Match, err error) {
	m = &Match{Scope: Scope{Objects: objs, Unread: unread}, MinT: mint, MaxT: maxt}
	through := make([]ulid.ULID, len(objs))
	for i := range objs {
		through[i] = objs[i].DeletesThrough
	}
	if m.Deletions, err = live.NewDeletions(snap.Tombstones, through); err != nil {
		return nil, err
	}
	if m.Tables, err = s.load(ctx, objs); err != nil {
		return nil, err
	}
	f := finder{limit: s.maxSeries, deletions: &m.Deletions}
	for _, t := range m.Tables {
		var rows []index.Range
		for _, ms := range sets {
			more, err := t.Select(ctx, ms)
			if err != nil {
				return nil, err
			}
			rows = index.Union(rows, more)
		}
		err := f.add(t, rows, func(row int) bool {
			from, upto := t.Times(row)
			return from <= maxt && upto >= mint && keep(t, row)
		})
		if err != nil {
			return nil, err
		}
	}
	m.Series, m.Rows = f.series, f.rows
	return m, nil
}

// finder merges the rows of objects to series, one per distinct label set.
type finder struct {
	limit     int // series
	deletions *live.Deletions

	series []Series
	rows   [][]Row     // by object
	keys   []index.Key // by series
	byKey  map[index.Key]int32
}

// add takes the rows of the next object for which keep is true.
func (f *finder) add(t *index.Table, ranges []index.Range, keep func(row int) bool) error {
	n := 0
	for _, x := range ranges {
		n += int(x.To - x.From)
	}
	rows := make([]Row, 0, n)
	if f.series == nil { // the first object has most series
		f.series, f.keys = make([]Series, 0, min(n, f.limit)), make([]index.Key, 0, min(n, f.limit))
	}
	var reader *index.Reader
	guess := int32(0)
	for _, x := range ranges {
		for at := int(x.From); at < int(x.To); at++ {
			if !keep(at) {
				continue
			}
			k, known := f.find(t.Key(at), guess)
			if !known {
				if len(f.series) >= f.limit {
					return request.TooManySeries(f.limit, len(f.series)+1)
				}
				if reader == nil {
					reader = t.NewReader()
				}
				if f.byKey != nil {
					f.byKey[t.Key(at)] = k
				}
				lset := reader.Labels(at)
				f.keys = append(f.keys, t.Key(at))
				f.series = append(f.series, Series{lset, f.deletions.Matching(nil, lset)})
			}
			guess = k + 1
			rows = append(rows, Row{k, int32(at)})
		}
	}
	f.rows = append(f.rows, rows)
	return nil
}

// find returns the series of a key, or the number that it will have. Most objects have the same
// series in the same order, so the guess is mostly right.
func (f *finder) find(key index.Key, guess int32) (k int32, known bool) {
	if int(guess) < len(f.keys) && f.keys[guess] == key {
		return guess, true
	}
	if len(f.rows) == 0 { // the first object has every series once
		return int32(len(f.series)), false
	}
	if f.byKey == nil {
		f.byKey = make(map[index.Key]int32, len(f.keys))
		for i, key := range f.keys {
			f.byKey[key] = int32(i)
		}
	}
	if k, known = f.byKey[key]; known {
		return k, true
	}
	return int32(len(f.series)), false
}
