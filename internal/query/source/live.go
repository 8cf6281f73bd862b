package source

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Live returns the live objects of a snapshot with their footers, by rank, the lowest first. Reads
// that share a snapshot share them, so callers must not change them.
func (f *Files) Live(ctx context.Context, snap catalog.Snapshot) ([]Object, error) {
	id := Identify(snap)
	if known, ok := f.recent.get(id); ok {
		f.metrics.CountLookups("footer", len(known), 0)
		return known, nil
	}
	out, err := f.locate(ctx, Refs(snap))
	if err == nil {
		f.recent.add(id, out)
	}
	return out, err
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

// lastRead are the objects of the snapshots that were read last. Consecutive queries mostly read the
// same one.
type lastRead struct {
	mu   sync.Mutex
	last []located // the one that was used last comes first
	size int       // objects
}

type located struct {
	of      Identity
	objects []Object
}

func (r *lastRead) get(id Identity) ([]Object, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.last, func(l located) bool { return l.of == id })
	if i < 0 {
		return nil, false
	}
	found := r.last[i]
	copy(r.last[1:i+1], r.last[:i])
	r.last[0] = found
	return found.objects, true
}

// add keeps the objects of a snapshot, in place of those that were used longest ago.
func (r *lastRead) add(id Identity, objects []Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.last, func(l located) bool { return l.of == id }) || len(objects) > maxRecentObjects {
		return
	}
	r.last = slices.Insert(r.last, 0, located{id, objects})
	for r.size += len(objects); len(r.last) > maxRecent || r.size > maxRecentObjects; {
		oldest := len(r.last) - 1
		r.size -= len(r.last[oldest].objects)
		r.last[oldest] = located{}
		r.last = r.last[:oldest]
	}
}
