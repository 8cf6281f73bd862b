package samples

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/recent"
)

// Bytes implements index.Sized. Near times are those of a table, which is in the cache as well.
func (b *batch) Bytes() int64 { return int64(128 + 8*len(b.t) + 8*len(b.v) + 8*len(b.st)) }

// blobs are the native histograms of a segment, encoded.
type blobs struct {
	t    []int64 // ms
	data []string
}

// Bytes implements index.Sized.
func (b *blobs) Bytes() int64 {
	n := int64(64 + 24*len(b.t))
	for _, s := range b.data {
		n += int64(len(s))
	}
	return n
}

// listsKey is the key of the lists of a segment in the cache: of those of the rows of t, its series
// table.
func listsKey(o *source.Object, t *index.Table) string { return o.Lists + t.RowsKey() }

// segmentFloats returns the float samples of the rows of t, the series table of a segment.
func (s *Reader) segmentFloats(ctx context.Context, o *source.Object, t *index.Table) (*batch, error) {
	if known := s.recent.Get(o.Series, o.Size); known != nil && shares(known, t) {
		if !s.fits(t.TotalFloats()) {
			return recentFloats(known, t), nil
		}
		b, hit, err := index.Get(ctx, s.cache, listsKey(o, t), func() (*batch, error) { return recentFloats(known, t), nil })
		s.metrics.CountLookup("samples", hit)
		return b, err
	}
	return lists(ctx, s, "samples", listsKey(o, t), o, t, func(c *segment.Columns) (b *batch, err error) {
		b = &batch{}
		n := t.TotalFloats()
		if b.base, b.near = t.FloatTimes(); b.near == nil {
			if _, b.t, err = c.Times(segment.ColTS, t.Some()); err != nil {
				return nil, err
			}
		}
		if _, b.v, err = c.Doubles(segment.ColValue, t.Some()); err != nil {
			return nil, err
		}
		if c.Has(segment.ColST) {
			if _, b.st, err = c.Times(segment.ColST, t.Some()); err != nil {
				return nil, err
			}
		}
		if int64(len(b.t)+len(b.near)) != n || int64(len(b.v)) != n || b.st != nil && int64(len(b.st)) != n {
			return nil, fmt.Errorf("%w: %d times, %d values, %d start timestamps of %d samples", segment.ErrFormat, len(b.t)+len(b.near), len(b.v), len(b.st), n)
		}
		return b, nil
	})
}

// shares reports whether the float samples of the rows of t, the series table of a segment, can be
// taken from its content in memory.
func shares(known *recent.Segment, t *index.Table) bool {
	if !t.Partial() {
		return int64(len(known.V)) == t.TotalFloats()
	}
	_, near := known.Scraped()
	_, own := t.FloatTimes()
	return near != nil && own != nil
}

// recentFloats returns the float samples of the rows of t, the series table of a segment whose
// content is in memory. Those of all rows it shares.
func recentFloats(known *recent.Segment, t *index.Table) *batch {
	b := &batch{v: known.V, st: known.ST}
	if t.Partial() {
		b.v, b.st = ofRows(known.V, t.Some()), ofRows(known.ST, t.Some())
	}
	if b.base, b.near = t.FloatTimes(); b.near == nil {
		b.t = known.AppendTimes(make([]int64, 0, len(b.v)), 0, len(b.v))
	}
	return b
}

// ofRows returns the values of some rows, nil if there are no values.
func ofRows[T any](values []T, rows []uint32) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = values[row]
	}
	return out
}

// segments reads the samples in segments.
func (r *Collector) segments(ctx context.Context) error {
	floats, hists := make([]*batch, len(r.Objects)), make([]*blobs, len(r.Objects))
	which := make([]int, 0, len(r.Objects))
	for i := range r.Objects {
		if r.Objects[i].Footer.Meta == nil && len(r.Rows[i]) > 0 {
			which = append(which, i)
		}
	}
	rest := index.Held(r.reader.cache, len(which), func(k int) string { return listsKey(&r.Objects[which[k]], r.Tables[which[k]]) }, func(k int, b *batch) { floats[which[k]] = b })
	r.reader.metrics.CountLookups("samples", len(which)-len(rest), 0)
	for k, i := range which {
		if floats[i] != nil && r.Tables[i].TotalHists() > 0 {
			rest = append(rest, k) // it may have both
		}
	}
	err := r.reader.files.Each(ctx, len(rest), func(ctx context.Context, k int) (err error) {
		i := which[rest[k]]
		floats[i], hists[i], err = r.listed(ctx, i)
		return err
	})
	if err != nil {
		return err
	}
	for _, i := range which {
		if err := r.segment(i, floats[i], hists[i]); err != nil {
			return err
		}
	}
	return nil
}

// fragments returns memory for n fragments.
func (r *Collector) fragments(n int) []fragment {
	if r.memory == nil {
		return make([]fragment, n)
	}
	m := r.memory
	if cap(m.fragments) < n {
		m.fragments = make([]fragment, n)
	}
	m.fragments = m.fragments[:max(n, len(m.fragments))]
	return m.fragments[:n]
}

// reserve makes room for a fragment of each row, before any is taken.
func (r *Collector) reserve() {
	all := 0
	for _, rows := range r.Rows {
		for _, x := range rows {
			r.got[x.Series].rows++
		}
		all += len(rows)
	}
	if r.HeadFrom > 0 {
		for _, s := range r.got {
			s.rows++
		}
		all += len(r.got)
	}
	room := r.fragments(all)
	for _, s := range r.got {
		s.floats, room = room[:0:s.rows], room[s.rows:]
	}
}

// listed returns the lists of a segment in which its matching rows have elements, nil for others
// and for blocks.
func (r *Collector) listed(ctx context.Context, object int) (floats *batch, hists *blobs, err error) {
	o, t := &r.Objects[object], r.Tables[object]
	if o.Footer.Meta != nil {
		return nil, nil, nil
	}
	has := func(places func(*index.Table, int) (int64, int64)) bool {
		return slices.ContainsFunc(r.Rows[object], func(x lookup.Row) bool { _, n := places(t, int(x.N)); return n > 0 })
	}
	if has((*index.Table).Floats) {
		if floats, err = r.reader.segmentFloats(ctx, o, t); err != nil {
			return nil, nil, err
		}
	}
	if has((*index.Table).Hists) {
		hists, err = lists(ctx, r.reader, "histograms", "histograms of "+o.Series+t.RowsKey(), o, t, func(c *segment.Columns) (b *blobs, err error) {
			b = &blobs{}
			if _, b.t, err = c.Times(segment.ColHistTS, t.Some()); err != nil {
				return nil, err
			}
			if _, b.data, err = c.Blobs(segment.ColHist, t.Some()); err != nil {
				return nil, err
			}
			if n := t.TotalHists(); int64(len(b.t)) != n || int64(len(b.data)) != n {
				return nil, fmt.Errorf("%w: %d times, %d messages of %d histograms", segment.ErrFormat, len(b.t), len(b.data), n)
			}
			return b, nil
		})
	}
	return floats, hists, err
}

// segment takes the samples of one segment. nil lists have none.
func (r *Collector) segment(object int, floats *batch, hists *blobs) error {
	t, held := r.Tables[object], int64(0)
	concerned := r.Deletions.Concern(object)
	for _, x := range r.Rows[object] {
		s := r.got[x.Series]
		if first, n := t.Floats(int(x.N)); floats != nil && n > 0 {
			lo, hi := 0, 1
			if floats.near == nil {
				lo, hi = between(floats.t[first:first+n], r.MinT, r.MaxT)
			} else if at := floats.at(uint32(first)); at < r.MinT || at > r.MaxT {
				continue
			}
			if lo == hi {
				continue
			}
			held += int64(hi - lo)
			at := uint32(first) + uint32(lo)
			f := fragment{floats, at, at, uint32(hi - lo), uint32(object)}
			if concerned {
				s.take(f, &r.Deletions)
			} else {
				s.floats = append(s.floats, f)
			}
		}
	}
	if err := r.hold(held); err != nil || hists == nil {
		return err
	}
	for _, x := range r.Rows[object] {
		if first, n := t.Hists(int(x.N)); n > 0 {
			// The last histogram before the range shows whether a counter was reset.
			s := r.got[x.Series]
			lo, hi := between(hists.t[first:first+n], r.MinT, r.MaxT)
			for i := first + int64(max(lo-1, 0)); i < first+int64(hi); i++ {
				p, ok, err := r.histogram(s, object, hists.t[i], hists.data[i])
				if err != nil {
					return err
				}
				if ok {
					s.hists = append(s.hists, p)
				}
			}
		}
	}
	return nil
}

// between returns the positions [lo, hi) of ascending times in [mint, maxt].
func between(ts []int64, mint, maxt int64) (lo, hi int) {
	if n := len(ts); n > 0 && ts[0] >= mint && ts[n-1] <= maxt { // as most are
		return 0, n
	}
	lo = reaching(ts, mint)
	if maxt == math.MaxInt64 {
		return lo, len(ts)
	}
	return lo, max(lo, reaching(ts, maxt+1))
}

// reaching returns the position of the first of ascending times that is at or after t, len(ts) if
// there is none. It searches first around the position that t has if the times are evenly apart, as
// most are: the steps of a search in all of them read from all over the memory.
func reaching(ts []int64, t int64) int {
	const around = 8
	last := len(ts) - 1
	switch {
	case last < 0 || ts[0] >= t:
		return 0
	case ts[last] < t:
		return len(ts)
	}
	first := float64(ts[0])
	guess := int((float64(t) - first) / (float64(ts[last]) - first) * float64(last))
	lo, hi := max(0, guess-around), min(last, guess+around)
	if ts[lo] >= t || ts[hi] < t {
		lo, hi = 0, last
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return ts[lo+i] >= t })
}
