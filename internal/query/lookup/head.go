package lookup

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/recent/head"
	"github.com/promlake/promlake/internal/temporality"
)

// heldSamples is the number of samples that all selectors of a query take from a head at most: they
// are copied, and those who store samples wait for it.
const heldSamples = 1 << 20

// Selector asks for the series that match all matchers, in [MinT, MaxT] (ms, inclusive).
type Selector struct {
	MinT, MaxT int64
	Matchers   []*labels.Matcher
}

// Held finds the series of several selectors with their samples in the memory of those that this
// process has stored, all of the same moment, and in objects where they are older. It returns nil
// if one of them needs more than that: objects of other processes, or a view of the series that is
// not that of the store; and nil of a selector that ends before the memory begins.
func (c *Chooser) Held(ctx context.Context, snap catalog.Snapshot, all []Selector) ([]*Resolution, error) {
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
		return c.partly(ctx, snap, objects, all, mint, maxt)
	}
	defer read.Close()
	for i := len(objects) - 1; i >= 0; i-- {
		o := &objects[i]
		if f := o.Footer; f.Rows > 0 && f.MaxT >= mint && f.MinT <= maxt && !read.Has(o.Series, f.MaxT, mint) {
			return nil, nil
		}
	}
	out, room := make([]*Resolution, len(all)), int64(heldSamples)
	for i := range all {
		s := &all[i]
		series, ok := read.Select(s.Matchers, s.MinT, s.MaxT, c.maxSeries, int(room))
		if !ok || c.hasViews(ctx, series, s.Matchers) {
			return nil, nil
		}
		out[i] = held(series)
		room -= out[i].Samples
	}
	return out, nil
}

// hasViews reports whether some of the series are not shown as they are stored: replicas, and
// series of delta temporality.
func (c *Chooser) hasViews(ctx context.Context, series []head.Series, ms []*labels.Matcher) bool {
	rule := c.Rule(ctx).For(ms)
	for i := range series {
		if ls := series[i].Labels; temporality.Has(ls) || rule.On() && rule.Has(ls) {
			return true
		}
	}
	return false
}

// held returns the resolution of series with their samples.
func held(series []head.Series) *Resolution {
	out := &Resolution{Scope: Scope{FromHead: true}, Series: make([]ResolvedSeries, len(series)), IDsAgree: true}
	ids := make(map[uint64]struct{}, len(series))
	for i := range series {
		x := &series[i]
		out.Series[i] = ResolvedSeries{Series: Series{Labels: x.Labels, Hash: x.ID, Head: x}, ID: x.ID}
		out.Samples += int64(len(x.T))
		_, taken := ids[x.ID]
		out.IDsAgree = out.IDsAgree && !taken
		ids[x.ID] = struct{}{}
	}
	return out
}
