package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
)

// PruneStore is the part of objstore.Store that pruning needs.
type PruneStore interface {
	Store
	Delete(ctx context.Context, key string) error
}

// maxIdleCopies is how many copies of unreadably old manifests may lie about before they alone are worth a commit.
const maxIdleCopies = 32

// PruneHistory ends the readable history at the newest manifest that was committed at least delay
// ago (by the store's clock), if that lets anything be deleted or forgotten, and deletes the copies
// of all manifests before it. delay is longer than the longest query. It returns the number of
// copies deleted.
//
// An object that a readable manifest names as live must not be deleted, nor one that a manifest
// names which was readable less than delay ago: Deletable waits as long after every commit that
// this function makes. So it makes none before the last one has served its purpose.
func PruneHistory(ctx context.Context, store PruneStore, tenant string, delay time.Duration) (int, error) {
	now, err := store.Now(ctx)
	if err != nil {
		return 0, err
	}
	// The copies are listed first, so that the manifest, read afterwards, is none of them.
	copies, err := listCopies(ctx, store, tenant)
	if err != nil {
		return 0, err
	}
	cur, err := readManifest(ctx, store, tenant)
	if err != nil {
		return 0, err
	}
	m, due := cur.Manifest, now.Add(-delay)
	oldest, err := newestBefore(ctx, store, tenant, cur, copies, due)
	if err != nil {
		return 0, err
	}
	served := m.Oldest.At <= due.UnixMilli() && m.Deletable(now, delay).Len() == 0
	if served && (m.prunable(now, oldest, due.UnixMilli()) || copiesBefore(copies, oldest.ID) > maxIdleCopies) {
		m, err = Commit(ctx, store, tenant, func(m Manifest, now time.Time) (Manifest, error) { return m.Prune(now, oldest) })
		if err != nil {
			return 0, fmt.Errorf("prune history: %w", err)
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

// newestBefore returns the newest manifest that was committed at or before due, or the oldest readable one.
func newestBefore(ctx context.Context, store Getter, tenant string, cur stored, copies []manifestCopy, due time.Time) (Point, error) {
	if !cur.modified.After(due) {
		return cur.point(), nil
	}
	for i := len(copies) - 1; i >= 0 && copies[i].id.Compare(cur.Oldest.ID) > 0; i-- {
		if copies[i].modified.After(due) {
			continue
		}
		s, err := get(ctx, store, key.ManifestCopy(tenant, copies[i].id))
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

// prunable says whether history that begins with oldest lets an object be deleted that was superseded until due (ms), or an entry be dropped.
func (m Manifest) prunable(now time.Time, oldest Point, due int64) bool {
	forget := m.at(now) - forgetAfter.Milliseconds()
	useful := func(at int64, generation, gone uint64) bool {
		if gone > 0 {
			return gone <= oldest.Generation && at <= forget
		}
		return at <= due && m.Oldest.Generation < generation && generation <= oldest.Generation
	}
	for _, c := range m.Consumed {
		if useful(c.At, c.Generation, c.Gone) {
			return true
		}
	}
	for _, r := range m.Retired {
		if useful(r.At, r.Generation, r.Gone) {
			return true
		}
	}
	return false
}

// copiesBefore counts the copies that are older than the manifest id.
func copiesBefore(copies []manifestCopy, id ulid.ULID) (n int) {
	for n < len(copies) && copies[n].id.Compare(id) < 0 {
		n++
	}
	return n
}
