package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Listing is the first half of a snapshot: the segments of a tenant in the 2h windows that overlap
// a range of time, as they were listed.
type Listing struct {
	snap       Snapshot // without the content of the manifest
	mint, maxt int64
}

// List lists the segments of tenant in the windows that overlap [mint, maxt] (ms since the Unix
// epoch, inclusive). It is the first half of Take.
func List(ctx context.Context, store objstore.Lister, tenant string, mint, maxt int64) (Listing, error) {
	return ListLive(ctx, store, tenant, mint, maxt, Empty())
}

// ListLive is List without the segments that known counts as consumed. They are live in no later
// manifest: With must get known or a later one, which its generation shows. A directory does not
// look at their files, of which thousands may wait for their deletion.
func ListLive(ctx context.Context, store objstore.Lister, tenant string, mint, maxt int64, known Manifest) (Listing, error) {
	l := Listing{snap: Snapshot{Tenant: tenant}, mint: max(mint, key.MinTime), maxt: min(maxt, key.MaxTime)}
	if l.mint > l.maxt {
		return l, nil
	}
	prefix := key.SegmentsPrefix(tenant)
	// Every key of the first window sorts after the window's name without its slash, and every key
	// of an earlier one before it.
	after, end := prefix+key.WindowOf(l.mint).String(), ""
	if last := key.WindowOf(l.maxt); last.End() <= key.MaxTime {
		end = prefix + key.Window(last.End()).String()
	}
	all := store.List(ctx, prefix, after)
	if len(known.Consumed) > 0 {
		all = objstore.ListExcept(ctx, store, prefix, after, known.consumes)
	}
	for obj, err := range all {
		if err != nil {
			return Listing{}, fmt.Errorf("list segments of tenant %s: %w", tenant, err)
		}
		if end != "" && obj.Key >= end {
			break
		}
		seg, err := key.ParseSegment(obj.Key)
		if err != nil {
			l.snap.Skipped++
			continue
		}
		l.snap.Segments = append(l.snap.Segments, SegmentRef{Segment: seg, Size: obj.Size, ETag: obj.ETag, Rank: rankOf(seg, obj.Modified)})
	}
	slices.SortFunc(l.snap.Segments, func(a, b SegmentRef) int {
		return cmp.Or(a.Rank.Compare(b.Rank), cmp.Compare(a.Window, b.Window))
	})
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
// be of a range that has all of it. Snapshots that have the same segments, or blocks, share them:
// they are never changed.
func (s Snapshot) Narrow(mint, maxt int64) Snapshot {
	out := Snapshot{Tenant: s.Tenant, Manifest: s.Manifest, Skipped: s.Skipped}
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	if mint > maxt {
		return Snapshot{Tenant: s.Tenant}
	}
	first, last := key.WindowOf(mint), key.WindowOf(maxt)
	out.Segments = kept(s.Segments, func(r SegmentRef) bool { return r.Window >= first && r.Window <= last })
	out.Blocks = kept(s.Blocks, func(b Block) bool { return b.overlaps(mint, maxt) })
	out.Tombstones = kept(s.Tombstones, func(t Tombstone) bool { return t.Overlaps(mint, maxt) })
	return out
}

// kept returns the elements of all for which keep is true: all itself, if it is true for each.
func kept[T any](all []T, keep func(T) bool) (out []T) {
	if !slices.ContainsFunc(all, func(x T) bool { return !keep(x) }) {
		return all
	}
	for _, x := range all {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

// Tenants returns the tenants that have objects, in ascending order.
func Tenants(ctx context.Context, store objstore.FolderLister) ([]string, error) {
	const prefix = key.Version + "/"
	var out []string
	for folder, err := range store.ListFolders(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list tenants: %w", err)
		}
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(folder, prefix), "/"))
	}
	slices.Sort(out) // folders sort "a!/" before "a/", for they end in a slash
	return out, nil
}
