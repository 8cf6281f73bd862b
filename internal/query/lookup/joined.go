package lookup

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

const (
	// joinedRange is the longest range (ms) of a query whose last samples come from memory, and whose
	// others from objects: longer ones may need rollups.
	joinedRange = int64(6 * time.Hour / time.Millisecond)
	// joinedLeast is how many of its last ms must be in memory.
	joinedLeast = int64(3 * time.Minute / time.Millisecond)
)

// newest returns the samples of selectors that are in memory, which are those from a time (ms) on.
func (c *Chooser) newest(ctx context.Context, snap catalog.Snapshot, objects []source.Object, all []Selector, maxt int64, room *Room) (out []*Resolution, from int64, ok bool) {
	read, from, ok := c.recent.Head(snap.Tenant).Newest(snap.Manifest.LastTombstone)
	if !ok {
		return nil, 0, false
	}
	defer read.Close()
	for i := range objects {
		if o := &objects[i]; o.Footer.Rows > 0 && o.Footer.MaxT >= from && o.Footer.MinT <= maxt {
			from = max(from, read.Upto(o.Series, o.Footer.MaxT)+1)
		}
	}
	if from > maxt-joinedLeast {
		return nil, 0, false
	}
	out, ok = c.selected(ctx, read, all, from, room)
	return out, from, ok
}

// join returns the resolution of the series of older, which has their samples before a time (ms),
// and of newer, which has those from then on. It reports false if that is not the same as one of
// objects alone.
func join(older, newer *Resolution, from int64) (*Resolution, bool) {
	if older.HasHists || older.Starts {
		return nil, false
	}
	out := &Resolution{Scope: older.Scope, Samples: older.Samples + newer.Samples}
	out.HeadFrom = from
	out.Series = make([]ResolvedSeries, 0, max(len(older.Series), len(newer.Series)))
	a, b := older.Series, newer.Series
	for len(a)+len(b) > 0 {
		order := -1
		if len(a) == 0 {
			order = 1
		} else if len(b) > 0 {
			order = labels.Compare(a[0].Labels, b[0].Labels)
		}
		var s ResolvedSeries
		if order <= 0 {
			s, a = a[0], a[1:]
		}
		if order >= 0 {
			if order > 0 {
				s = b[0]
			}
			s.Head, b = b[0].Head, b[1:]
		}
		out.Series = append(out.Series, s)
	}
	return out, true
}
