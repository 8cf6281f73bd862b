package lookup

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/recent"
)

// heldSamples is the number of samples that all selectors of a query take from a head at most: they
// are copied, and those who store samples wait for it.
const heldSamples = 1 << 20

// Selector asks for the series that match all matchers, in [MinT, MaxT] (ms, inclusive).
type Selector struct {
	MinT, MaxT int64
	Matchers   []*labels.Matcher
}

// Room is memory for what Held returns. The zero value is ready.
type Room struct {
	samples recent.Room
	series  []ResolvedSeries
	found   []Resolution
}

// keptSeries is the number of series up to which the memory of a room is used again.
const keptSeries = 4 << 10

// Reset takes all memory back. What Held has returned must not be used any more.
func (r *Room) Reset() {
	r.samples.Reset()
	if cap(r.series) > keptSeries || cap(r.found) > keptSeries {
		r.series, r.found = nil, nil
		return
	}
	clear(r.series)
	clear(r.found)
	r.series, r.found = r.series[:0], r.found[:0]
}

// Held finds the series of several selectors with their samples in the memory of those that this
// process has stored, all of the same moment, and in objects where they are older. It returns nil
// if one of them needs more than that: objects of other processes, or a view of the series that is
// not that of the store; and nil of a selector that ends before the memory begins. What it returns
// lies in memory of room.
func (c *Chooser) Held(ctx context.Context, snap catalog.Snapshot, all []Selector, room *Room) ([]*Resolution, error) {
	if asked := request.From(ctx); len(all) == 0 || c.recent == nil || !asked.AsOf.IsZero() || asked.Snapshot != nil || len(snap.Tombstones) > 0 {
		return nil, nil
	}
	mint, maxt := all[0].MinT, all[0].MaxT
	for _, s := range all {
		mint, maxt = min(mint, s.MinT), max(maxt, s.MaxT)
	}
	from, deletions := c.recent.Head(snap.Tenant), snap.Manifest.LastTombstone
	read, ok := from.Read(mint, deletions)
	if ok {
		read.Close() // nobody who stores samples waits for footers
	} else if maxt-mint > joinedRange || !from.On() { // as in most processes
		return nil, nil
	}
	objects, err := c.files.Live(ctx, snap)
	if err != nil {
		return nil, err
	}
	if read, ok = from.Read(mint, deletions); !ok {
		// The queries begin before the memory does. Their last samples are mostly in segments,
		// which are many.
		newer, from, ok := c.newest(ctx, snap, objects, all, maxt, room)
		if !ok || from <= mint {
			return nil, nil
		}
		out := make([]*Resolution, len(all))
		for i := range all {
			s := &all[i]
			switch {
			case s.MaxT < from:
				continue
			case s.MinT >= from:
				out[i] = newer[i]
				continue
			}
			m, err := c.Match(ctx, snap, false, s.MinT, from-1, s.Matchers)
			if errors.Is(err, request.ErrNarrow) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			if m.Replicas != nil || m.HasDeltas() {
				return nil, nil
			}
			if out[i], ok = join(m.Resolution(), newer[i], from); !ok || len(out[i].Series) > c.maxSeries {
				return nil, nil
			}
		}
		return out, nil
	}
	defer read.Close()
	for i := len(objects) - 1; i >= 0; i-- {
		o := &objects[i]
		if f := o.Footer; f.Rows > 0 && f.MaxT >= mint && f.MinT <= maxt && !read.Has(o.Series, f.MaxT, mint) {
			return nil, nil
		}
	}
	out, _ := c.selected(ctx, read, all, math.MinInt64, room)
	return out, nil
}

// selected returns the samples of selectors from a time (ms) on, nil for those that end before it.
// It reports false if there are too many, or if some series are not shown as they are stored.
func (c *Chooser) selected(ctx context.Context, read recent.Reading, all []Selector, from int64, room *Room) ([]*Resolution, bool) {
	out, left := make([]*Resolution, len(all)), int64(heldSamples)
	for i := range all {
		s := &all[i]
		if s.MaxT < from {
			continue
		}
		series, ok := read.Select(s.Matchers, max(s.MinT, from), s.MaxT, c.maxSeries, int(left), &room.samples)
		if !ok || c.hasViews(ctx, series, s.Matchers) {
			return nil, false
		}
		out[i] = room.held(series)
		left -= out[i].Samples
	}
	return out, true
}

// hasViews reports whether some of the series are not shown as they are stored: replicas, and
// series of delta temporality.
func (c *Chooser) hasViews(ctx context.Context, list []recent.Series, ms []*labels.Matcher) bool {
	rule := c.Rule(ctx).For(ms)
	for i := range list {
		if ls := list[i].Labels; series.IsDelta(ls) || rule.On() && rule.Has(ls) {
			return true
		}
	}
	return false
}

// held returns the resolution of series with their samples.
func (r *Room) held(series []recent.Series) *Resolution {
	all := slices.Grow(r.series, len(series))
	begin, samples := len(all), int64(0)
	for i := range series {
		x := &series[i]
		all = append(all, ResolvedSeries{Series: Series{Labels: x.Labels, Head: x}})
		samples += int64(len(x.T))
	}
	r.series = all
	own := slices.Clip(all[begin:])
	r.found = append(r.found, Resolution{Scope: Scope{FromHead: true}, Series: own, Samples: samples})
	return &r.found[len(r.found)-1]
}
