package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/segment"
)

// Bytes implements index.Sized.
func (b *batch) Bytes() int64 { return int64(96 + 8*len(b.t) + 8*len(b.v) + 8*len(b.st)) }

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

// sampleShare is the inverse of the share of the cache that the decoded samples of one segment may take. Those of larger ones are decoded for
// every read.
const sampleShare = 16

// lists returns what load makes of a segment's columns, from the cache if there is no more of it than a share.
func lists[T index.Sized](ctx context.Context, s *Stage, what string, o *source.Object, load func(*segment.Columns) (T, error)) (T, error) {
	open := func() (out T, err error) {
		in := s.files.Open(ctx, o.Series, o.Size)
		err = in.Prefetch([][2]int64{{0, o.Size}})
		var columns *segment.Columns
		if err == nil {
			columns, err = segment.OpenColumns(in, o.Size)
		}
		if err == nil {
			out, err = load(columns)
		}
		if err = errors.Join(err, in.Close()); err != nil {
			return out, o.Broken(fmt.Errorf("read %s of %s: %w", what, o.Series, err))
		}
		return out, nil
	}
	if o.Footer.Samples*16 > s.settings.IndexCacheBytes/sampleShare {
		return open()
	}
	out, hit, err := index.Get(ctx, s.index, what+" of "+o.Series, open)
	s.metrics.Looked("samples", hit)
	return out, err
}

// segmentFloats returns all float samples of a segment, n by its series table.
func (s *Stage) segmentFloats(ctx context.Context, o *source.Object, n int64) (*batch, error) {
	return lists(ctx, s, "samples", o, func(c *segment.Columns) (b *batch, err error) {
		b = &batch{}
		if _, b.t, err = c.Times(segment.ColTS); err != nil {
			return nil, err
		}
		if _, b.v, err = c.Doubles(segment.ColValue); err != nil {
			return nil, err
		}
		if c.Has(segment.ColST) {
			if _, b.st, err = c.Times(segment.ColST); err != nil {
				return nil, err
			}
		}
		if int64(len(b.t)) != n || int64(len(b.v)) != n || b.st != nil && int64(len(b.st)) != n {
			return nil, fmt.Errorf("%w: %d times, %d values, %d start timestamps of %d samples", segment.ErrFormat, len(b.t), len(b.v), len(b.st), n)
		}
		return b, nil
	})
}

// segmentHists returns all native histograms of a segment, n by its series table.
func (s *Stage) segmentHists(ctx context.Context, o *source.Object, n int64) (*blobs, error) {
	return lists(ctx, s, "histograms", o, func(c *segment.Columns) (b *blobs, err error) {
		b = &blobs{}
		if _, b.t, err = c.Times(segment.ColHistTS); err != nil {
			return nil, err
		}
		if _, b.data, err = c.Blobs(segment.ColHist); err != nil {
			return nil, err
		}
		if int64(len(b.t)) != n || int64(len(b.data)) != n {
			return nil, fmt.Errorf("%w: %d times, %d messages of %d histograms", segment.ErrFormat, len(b.t), len(b.data), n)
		}
		return b, nil
	})
}

// segments reads the samples that segments have.
func (r *reading) segments(ctx context.Context) error {
	floats, hists := make([]*batch, len(r.Objects)), make([]*blobs, len(r.Objects))
	err := r.stage.files.Each(ctx, len(r.Objects), func(ctx context.Context, i int) (err error) {
		floats[i], hists[i], err = r.listed(ctx, i)
		return err
	})
	if err != nil {
		return err
	}
	for i := range r.Objects {
		if err := r.segment(i, floats[i], hists[i]); err != nil {
			return err
		}
	}
	return nil
}

// listed returns the lists of a segment that its matching rows have elements of, nil for others and for blocks.
func (r *reading) listed(ctx context.Context, object int) (floats *batch, hists *blobs, err error) {
	o, t := &r.Objects[object], r.Tables[object]
	if o.Footer.Meta != nil {
		return nil, nil, nil
	}
	has := func(places func(*index.Table, int) (int64, int64)) bool {
		return slices.ContainsFunc(r.Rows[object], func(x lookup.Row) bool { _, n := places(t, int(x.N)); return n > 0 })
	}
	if has((*index.Table).Floats) {
		if floats, err = r.stage.segmentFloats(ctx, o, t.TotalFloats()); err != nil {
			return nil, nil, err
		}
	}
	if has((*index.Table).Hists) {
		hists, err = r.stage.segmentHists(ctx, o, t.TotalHists())
	}
	return floats, hists, err
}

// segment takes the samples of one segment; nil is none.
func (r *reading) segment(object int, floats *batch, hists *blobs) error {
	t := r.Tables[object]
	for _, x := range r.Rows[object] {
		s := r.got[x.Series]
		if first, n := t.Floats(int(x.N)); floats != nil && n > 0 {
			lo, hi := between(floats.t[first:first+n], r.MinT, r.MaxT)
			if err := r.hold(int64(hi - lo)); err != nil {
				return err
			}
			if lo < hi {
				s.take(fragment{floats, uint32(first) + uint32(lo), uint32(hi - lo), uint32(object)}, &r.Deletions)
			}
		}
		if first, n := t.Hists(int(x.N)); hists != nil && n > 0 {
			if err := r.rowHists(s, object, hists, first, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowHists takes the histograms in range of one row, and before them the last one that is earlier: it tells whether a counter was reset.
func (r *reading) rowHists(s *memSeries, object int, hists *blobs, first, n int64) error {
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
	return nil
}

// between returns which of ascending times are in [mint, maxt].
func between(ts []int64, mint, maxt int64) (lo, hi int) {
	lo = sort.Search(len(ts), func(i int) bool { return ts[i] >= mint })
	return lo, lo + sort.Search(len(ts)-lo, func(i int) bool { return ts[lo+i] > maxt })
}
