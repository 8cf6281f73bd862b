package snapshot

import (
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// replaced returns the keys of the series files of the objects that a snapshot of a tenant had and
// that the next one has not, because a new manifest replaces them. No new read asks for what caches
// hold of them, so it would only fill these.
func replaced(before, now *aged) (keys []string) {
	if before.version.ID == now.version.ID {
		return nil
	}
	gone := catalog.Snapshot{Tenant: now.Tenant}
	live := make(map[key.Segment]bool, len(now.Segments))
	for i := range now.Segments {
		live[now.Segments[i].Segment] = true
	}
	for _, s := range before.Segments {
		if !live[s.Segment] && now.covers(int64(s.Window), s.Window.End()-1) {
			gone.Segments = append(gone.Segments, s)
		}
	}
	blocks := make(map[catalog.BlockID]bool, len(now.version.Blocks))
	for i := range now.version.Blocks {
		blocks[now.version.Blocks[i].BlockID()] = true
	}
	for _, b := range before.version.Blocks {
		if !blocks[b.BlockID()] {
			gone.Blocks = append(gone.Blocks, b)
		}
	}
	for _, o := range source.Refs(gone) {
		keys = append(keys, o.Series)
	}
	return keys
}
