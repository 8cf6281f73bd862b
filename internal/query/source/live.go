package source

import (
	"context"
	"slices"
	"unsafe"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Live returns the live objects of a snapshot with their footers, by rank, the lowest first. Reads
// that share a snapshot share them, so callers must not change them.
func (f *Files) Live(ctx context.Context, snap catalog.Snapshot) ([]Object, error) {
	id := Identify(snap)
	f.mu.Lock()
	known := f.recent.Get(id)
	f.mu.Unlock()
	if known != nil {
		f.metrics.CountLookups("footer", len(known.Value), 0)
		return known.Value, nil
	}
	out, err := f.locate(ctx, Refs(snap))
	if err != nil || len(out) > maxRecentObjects {
		return out, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.recent.Get(id) == nil {
		f.recent.Add(id, out, int64(max(len(out), maxRecentObjects/maxRecent)))
		f.recent.Evict(0)
	}
	return out, nil
}

// locate reads the footers of objects, in their order.
func (f *Files) locate(ctx context.Context, objs []Ref) ([]Object, error) {
	out := make([]Object, len(objs))
	rest := index.Held(f.footers, len(objs), func(i int) string { return objs[i].Series }, func(i int, ft *Footer) { out[i] = Object{&objs[i], ft} })
	f.metrics.CountLookups("footer", len(objs)-len(rest), 0)
	var last *Footer
	rest = slices.DeleteFunc(rest, func(i int) bool {
		ft := f.storedFooter(&objs[i], last)
		if ft != nil {
			out[i], last = Object{&objs[i], ft}, ft
		}
		return ft != nil
	})
	err := f.Each(ctx, len(rest), func(ctx context.Context, k int) error {
		i := rest[k]
		ft, err := f.footer(ctx, &objs[i])
		out[i] = Object{&objs[i], ft}
		return err
	})
	return out, err
}

// Identity identifies the objects of a snapshot by the memory of its slices, which is never changed.
// Whoever keeps an identity keeps the memory, so no other snapshot gets it.
type Identity struct {
	tenant           string
	segments         *catalog.SegmentRef
	blocks           *catalog.Block
	nSegments, nRest int
}

// Identify returns the identity of a snapshot.
func Identify(s catalog.Snapshot) Identity {
	return Identity{s.Tenant, unsafe.SliceData(s.Segments), unsafe.SliceData(s.Blocks), len(s.Segments), len(s.Blocks)}
}

const (
	// maxRecent is the number of snapshots whose objects are kept.
	maxRecent = 16
	// maxRecentObjects bounds the objects of all of them, about 300 bytes each with their footers.
	maxRecentObjects = 32 << 10
)

// warmSeries is the number of series up to which a block's series table, some megabytes, is fetched
// before it is known to be needed.
const warmSeries = 100_000

// maxWarm is the number of objects that are fetched before they are known to be needed. More of
// them might not stay in the caches until then.
const maxWarm = 256

// Warm fetches what a read of a snapshot asks for first: the footers of segments, small segments
// with them, and meta.json and small series tables of blocks that were not read before. It reports
// no errors: the read that needs an object meets them again.
func (f *Files) Warm(ctx context.Context, snap catalog.Snapshot) {
	small := map[string]bool{}
	for _, b := range snap.Blocks {
		small[b.Key(snap.Tenant).String()] = b.Series <= warmSeries
	}
	var tasks []func(context.Context)
	objs := Refs(snap)
	for i := range objs {
		o := &objs[i]
		if len(tasks) >= maxWarm {
			break
		}
		if f.Local() || f.footers.Has(o.Series) {
			continue
		}
		tasks = append(tasks, func(ctx context.Context) { _, _ = f.footer(ctx, o) })
		if o.IsBlock() && small[o.Block.String()] {
			tasks = append(tasks, func(ctx context.Context) {
				if _, release, err := f.cache.Whole(ctx, o.Series, -1); err == nil {
					release()
				}
			})
		}
	}
	_ = f.Each(ctx, len(tasks), func(ctx context.Context, i int) error {
		tasks[i](ctx)
		return nil
	})
}
