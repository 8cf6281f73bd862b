package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// maxIdleCopies is the number of copies of unreadable manifests that alone are worth a commit.
const maxIdleCopies = 32

// PruneHistory ends the readable history at the newest manifest that was committed at least delay
// ago (by the store's clock), if that lets anything be deleted or forgotten, and deletes the copies
// of all manifests before it. delay is longer than the longest query. It returns the number of
// copies deleted.
//
// An object that a readable manifest names as live must not be deleted, nor one that a manifest
// names which was readable less than delay ago: Deletable waits as long after every commit that
// this function makes. So it makes none before the last one has served its purpose.
func PruneHistory(ctx context.Context, store objstore.Store, tenant string, delay time.Duration) (int, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return 0, err
	}
	// The copies are listed first, so that the manifest, read afterwards, is none of them.
	copies, err := listCopies(ctx, store, tenant, ulid.ULID{})
	if err != nil {
		return 0, err
	}
	cur, err := readManifest(ctx, store, tenant, Version{})
	if err != nil {
		return 0, err
	}
	m := cur.Manifest
	if due := now.Add(-delay); m.Oldest.At <= due.UnixMilli() && m.Deletable(now, delay).Len() == 0 { // it has served
		oldest, err := newestBefore(ctx, store, tenant, cur, copies, due)
		if err != nil {
			return 0, err
		}
		if m.prunable(now, oldest, due.UnixMilli()) || copiesBefore(copies, oldest.ID) > maxIdleCopies {
			if err = m.deleteAgain(ctx, store, tenant, now, oldest); err == nil {
				m, err = CommitAfter(ctx, store, tenant, Version{m, cur.etag}, func(m Manifest, _ time.Time) (Manifest, error) { return m.Prune(now, oldest) })
			}
			if err != nil {
				return 0, fmt.Errorf("prune history: %w", err)
			}
		}
	}
	n := copiesBefore(copies, m.Oldest.ID)
	for _, c := range copies[:n] {
		if err := store.Delete(ctx, key.ManifestCopy(tenant, c.id)); err != nil {
			return 0, fmt.Errorf("delete manifest %s: %w", c.id, err)
		}
	}
	return n, nil
}

// deleteAgain deletes the segments whose entries Prune is to drop if they are in the store again. A
// repeated put can take effect after the first one was acknowledged and its object deleted: then
// its condition holds. The entry keeps such a segment from being live; without the entry it would
// be the newest of all.
func (m Manifest) deleteAgain(ctx context.Context, store objstore.Store, tenant string, now time.Time, oldest Point) error {
	dropped := map[string]bool{}
	var windows []key.Window // Consumed is sorted by window
	for _, c := range m.Consumed {
		if droppable(now, oldest, c.At, c.Gone) {
			dropped[c.Key(tenant).String()] = true
			windows = append(windows, c.Window)
		}
	}
	for _, w := range slices.Compact(windows) {
		var back []string
		for obj, err := range store.List(ctx, key.WindowPrefix(tenant, w), "") {
			if err != nil {
				return fmt.Errorf("look for segments that came back: %w", err)
			}
			if dropped[obj.Key] {
				back = append(back, obj.Key)
			}
		}
		for _, k := range back {
			if err := store.Delete(ctx, k); err != nil {
				return fmt.Errorf("delete a segment that came back: %w", err)
			}
		}
	}
	return nil
}

// newestBefore returns the newest manifest that was committed at or before due, or the oldest
// readable one.
func newestBefore(ctx context.Context, store objstore.Getter, tenant string, cur stored, copies []manifestCopy, due time.Time) (Point, error) {
	if !cur.modified.After(due) {
		return cur.point(), nil
	}
	for i := len(copies) - 1; i >= 0 && copies[i].id.Compare(cur.Oldest.ID) > 0; i-- {
		if copies[i].modified.After(due) {
			continue
		}
		s, err := get(ctx, store, key.ManifestCopy(tenant, copies[i].id), Version{})
		if errors.Is(err, objstore.ErrNotFound) {
			break // another collector is ahead
		}
		if err != nil {
			return Point{}, fmt.Errorf("read manifest %s: %w", copies[i].id, err)
		}
		return s.point(), nil
	}
	return cur.Oldest.Point, nil
}

// prunable reports whether pruning the history before oldest lets an object be deleted that was
// superseded until due (ms), or an entry be dropped.
func (m Manifest) prunable(now time.Time, oldest Point, due int64) bool {
	useful := func(at int64, generation, gone uint64) bool {
		return droppable(now, oldest, at, gone) || gone == 0 && at <= due && m.Oldest.Generation < generation && generation <= oldest.Generation
	}
	return slices.ContainsFunc(m.Consumed, func(c Consumed) bool { return useful(c.At, c.Generation, c.Gone) }) ||
		slices.ContainsFunc(m.Retired, func(r Retired) bool { return useful(r.At, r.Generation, r.Gone) })
}

// copiesBefore counts the copies that are older than the manifest id.
func copiesBefore(copies []manifestCopy, id ulid.ULID) (n int) {
	for n < len(copies) && copies[n].id.Compare(id) < 0 {
		n++
	}
	return n
}
