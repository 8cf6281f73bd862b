package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Count is a number of objects and their bytes.
type Count struct{ Objects, Bytes int64 }

func (c *Count) add(o Count) { c.Objects, c.Bytes = c.Objects+o.Objects, c.Bytes+o.Bytes }

// Garbage counts what was deleted.
type Garbage struct {
	Segments  Count
	Blocks    Count // objects are files
	Answers   Count // kept answers of queries
	Manifests Count // copies of former manifests; their bytes are not counted
	Orphans   int   // blocks of jobs that died, which will be deleted after DeletionDelay
}

// collect collects the garbage of all tenants.
func (s *Stage) collect(ctx context.Context, tenants []string, errs *failures) Garbage {
	each := make([]Garbage, len(tenants))
	s.eachTenant(ctx, tenants, errs, func(i int, tenant string) (err error) {
		each[i], err = s.Collect(ctx, tenant)
		return err
	})
	var sum Garbage
	for _, g := range each {
		sum.Segments.add(g.Segments)
		sum.Blocks.add(g.Blocks)
		sum.Answers.add(g.Answers)
		sum.Manifests.add(g.Manifests)
		sum.Orphans += g.Orphans
	}
	return sum
}

// Collect deletes the garbage of a tenant: objects that were live in no manifest which was readable
// within DeletionDelay, manifests that are too old to be read, and kept answers. It first retires
// the blocks of jobs that died in the manifest, so that no late commit can make them live, and
// deletes them as it does all others. A conflict with another collector is no error; the next cycle
// continues.
func (s *Stage) Collect(ctx context.Context, tenant string) (g Garbage, err error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return g, fmt.Errorf("collect garbage: %w", err)
	}
	v, err := catalog.Refresh(ctx, s.store, tenant, catalog.Version{})
	if err == nil {
		err = s.sweepAnswers(ctx, tenant, &v.Manifest, now, &g)
	}
	if err == nil {
		err = s.sweep(ctx, tenant, v, now, &g)
	}
	if err == nil {
		var n int
		n, err = catalog.PruneHistory(ctx, s.store, tenant, s.set.DeletionDelay)
		g.Manifests.Objects = int64(n)
	}
	if err == nil && s.scanDue(tenant) {
		err = s.retireOrphans(ctx, tenant, now, &g)
	}
	if errors.Is(err, catalog.ErrConflict) {
		err = nil
	}
	if err != nil {
		return g, fmt.Errorf("collect garbage: %w", err)
	}
	s.memory.change(tenant, func(x *seen) { x.collected = s.now() })
	return g, nil
}

// sweep deletes the objects that the manifest allows to delete, and then removes them from it. The
// order matters: a segment that exists and is not in the manifest would be live again.
func (s *Stage) sweep(ctx context.Context, tenant string, v catalog.Version, now time.Time, g *Garbage) error {
	dead := v.Deletable(now, s.set.DeletionDelay)
	if dead.Len() == 0 {
		return nil
	}
	// The listings of the windows have the sizes of segments, and show which of them are deleted
	// already.
	keys := make(map[string]bool, len(dead.Segments))
	windows := make([]key.Window, 0, len(dead.Segments)) // ascending, as ids are
	for _, id := range dead.Segments {
		keys[id.Key(tenant).String()] = true
		windows = append(windows, id.Window)
	}
	for _, w := range slices.Compact(windows) {
		size, err := s.deleteAll(ctx, key.WindowPrefix(tenant, w), keys)
		g.Segments.add(size)
		if err != nil {
			return err
		}
	}
	for _, b := range dead.Blocks {
		n, err := s.deleteAll(ctx, b.Key(tenant).Prefix(), nil)
		g.Blocks.add(n)
		if err != nil {
			return err
		}
	}
	return s.commit(ctx, tenant, v, func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		return m.Forget(dead.Segments, dead.Blocks)
	})
}

// deleteAll deletes the objects under a prefix; if only is not nil, those in it.
func (s *Stage) deleteAll(ctx context.Context, prefix string, only map[string]bool) (n Count, err error) {
	var sizes []int64
	var keys []string
	for obj, err := range s.store.List(ctx, prefix, "") {
		if err != nil {
			return n, err
		}
		if only == nil || only[obj.Key] {
			sizes, keys = append(sizes, obj.Size), append(keys, obj.Key)
		}
	}
	deleted, err := objstore.DeleteAll(ctx, s.store, keys)
	for _, size := range sizes[:deleted] {
		n.add(Count{1, size})
	}
	return n, err
}

// scanDue reports whether it is time to search the tenant's blocks for orphans, which costs a
// listing of all of them.
func (s *Stage) scanDue(tenant string) (due bool) {
	now := s.now()
	s.memory.change(tenant, func(x *seen) {
		if due = now.Sub(x.scanned) >= s.set.OrphanGrace/4; due {
			x.scanned = now
		}
	})
	return due
}

// retireOrphans retires the blocks that no manifest names and that are too old to be work in
// progress. It lists the blocks before it reads the manifest, so a block that is committed in
// between is not taken for an orphan. now is a time of the store's clock.
func (s *Stage) retireOrphans(ctx context.Context, tenant string, now time.Time, g *Garbage) error {
	var listed []catalog.BlockID
	last := ""
	for obj, err := range s.store.List(ctx, key.BlocksPrefix(tenant), "") {
		if err != nil {
			return err
		}
		if last != "" && strings.HasPrefix(obj.Key, last) {
			continue
		}
		b, _, err := key.ParseBlockFile(obj.Key)
		if err != nil {
			continue // not ours
		}
		last = b.Prefix()
		listed = append(listed, catalog.BlockID{Level: b.Level, Window: b.Window, ID: b.ID})
	}
	m, _, err := catalog.ReadManifest(ctx, s.store, tenant)
	if err != nil {
		return err
	}
	named, before := m.BlockIDs(), now.Add(-s.set.OrphanGrace)
	orphans := slices.DeleteFunc(listed, func(id catalog.BlockID) bool { return named[id] || !ulid.Time(id.ID.Time()).Before(before) })
	if len(orphans) == 0 {
		return nil
	}
	if err := s.commit(ctx, tenant, catalog.Version{}, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return m.RetireOrphans(now, orphans)
	}); err != nil {
		return err
	}
	g.Orphans += len(orphans)
	return nil
}

// answersEvery is the time between two listings of a tenant's kept answers.
const answersEvery = time.Hour

// sweepAnswers deletes kept answers that are older than the settings allow, and the oldest beyond
// their bytes. It also deletes those from before the last deletion of series, since they may have
// what was deleted: at once, and once more when the queries that began before have ended. That is
// before any block is deleted that the deletion made superfluous. now is a time of the store's
// clock.
func (s *Stage) sweepAnswers(ctx context.Context, tenant string, m *catalog.Manifest, now time.Time, g *Garbage) error {
	deleted := ulid.Time(m.LastTombstone.Time())
	ended := deleted.Add(s.set.DeletionDelay)
	swept := s.memory.recall(tenant).answers
	if now.Sub(swept) < answersEvery && !swept.Before(deleted) && (!swept.Before(ended) || now.Before(ended)) {
		return nil
	}
	if !now.Before(ended) {
		deleted = ended
	}
	var all []objstore.Object
	for obj, err := range s.store.List(ctx, key.AnswersPrefix(tenant), "") {
		if err != nil {
			return err
		}
		if _, err := key.ParseAnswer(obj.Key); err == nil {
			all = append(all, obj)
		}
	}
	slices.SortFunc(all, func(a, b objstore.Object) int { return b.Modified.Compare(a.Modified) })
	var dead []string
	var kept, removed int64
	for _, obj := range all { // the newest first
		if kept+obj.Size > s.set.AnswersBytes || now.Sub(obj.Modified) > s.set.AnswersAge || !obj.Modified.After(deleted) {
			dead, removed = append(dead, obj.Key), removed+obj.Size
			continue
		}
		kept += obj.Size
	}
	if _, err := objstore.DeleteAll(ctx, s.store, dead); err != nil {
		return err
	}
	g.Answers.add(Count{int64(len(dead)), removed})
	s.memory.change(tenant, func(x *seen) { x.answers = now })
	return nil
}
