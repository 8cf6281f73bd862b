package catalog

import (
	"context"
	"slices"

	"github.com/promlake/promlake/internal/key"
)

// Listing is the first half of a snapshot: the segments of a tenant in the 2h windows that overlap
// a range of time, as they were listed.
type Listing struct {
	snap       Snapshot // without the content of the manifest
	mint, maxt int64
}

// List lists the segments of tenant in the windows that overlap [mint, maxt] (ms since the Unix
// epoch, inclusive). It is the first half of Take.
func List(ctx context.Context, store Lister, tenant string, mint, maxt int64) (Listing, error) {
	l := Listing{snap: Snapshot{Tenant: tenant}, mint: max(mint, key.MinTime), maxt: min(maxt, key.MaxTime)}
	if l.mint > l.maxt {
		return l, nil
	}
	if err := l.snap.list(ctx, store, l.mint, l.maxt); err != nil {
		return Listing{}, err
	}
	return l, nil
}

// With returns the snapshot of the listing and a manifest. It has all live objects only if the
// manifest was read after the listing: with an earlier manifest, a segment that was compacted and
// deleted in between is missing. A caller may use such a snapshot to predict the objects of the
// next one.
func (l Listing) With(m Manifest) Snapshot {
	out := l.snap
	if l.mint > l.maxt {
		return out
	}
	out.Segments = slices.Clone(out.Segments)
	out.apply(m, l.mint, l.maxt)
	return out
}

// Narrow returns the snapshot of [mint, maxt] (ms, inclusive) at the moment of this one, which must
// be of a range that has all of it.
func (s Snapshot) Narrow(mint, maxt int64) Snapshot {
	out := Snapshot{Tenant: s.Tenant, Manifest: s.Manifest, Skipped: s.Skipped}
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt {
		return Snapshot{Tenant: s.Tenant}
	}
	first, last := key.WindowOf(mint), key.WindowOf(maxt)
	for _, r := range s.Segments {
		if r.Window >= first && r.Window <= last {
			out.Segments = append(out.Segments, r)
		}
	}
	out.overlapping(s.Blocks, s.Tombstones, mint, maxt)
	return out
}
