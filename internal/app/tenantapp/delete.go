package tenantapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// deleters is the number of objects that are deleted at once.
	deleters = 16
	// maxPasses bounds the passes over the tenant's objects: each further pass deletes those that
	// arrived during the one before.
	maxPasses = 5
)

// ErrBusy reports a tenant that is being written.
var ErrBusy = errors.New("the tenant is being written")

// Result counts the effects of a removal.
type Result struct {
	Deleted int64 // objects
	// KeptUntil is when the manifest, which is all that is left, may go. Zero: nothing is left.
	KeptUntil time.Time
}

// Delete removes a tenant, whose newest segment must have the age quiet; 0 removes also one that is
// being written. It may be repeated, also after a crash at any point, until nothing is left.
//
//	commit a manifest that names nothing ─▶ delete segments and blocks
//	     ─▶ wait ─▶ delete the history ─▶ delete manifest.json
//
// From the commit on, readers see no data of the tenant. They never see a part of it, because a
// reader of an earlier manifest fails at the first object that is gone. If the manifest were
// deleted first, segments that it counts as consumed would be live again, and series whose deletion
// it records would return. It outlives the data by the time that a compaction job may take
// (catalog.MaxJobAge): without it, such a job could still commit what it had read before.
func Delete(ctx context.Context, store objstore.Store, tenant string, quiet time.Duration) (r Result, err error) {
	if err = r.empty(ctx, store, tenant, quiet); err == nil {
		err = r.finish(ctx, store, tenant)
	}
	if err != nil {
		return r, fmt.Errorf("delete tenant %s: %w", tenant, err)
	}
	return r, nil
}

// empty deletes all data of the tenant except its manifests.
func (r *Result) empty(ctx context.Context, store objstore.Store, tenant string, quiet time.Duration) error {
	for range maxPasses {
		now, err := store.Now(ctx)
		if err != nil {
			return err
		}
		l, err := Look(ctx, store, tenant)
		if err != nil {
			return err
		}
		if age := now.Sub(l.Newest); quiet > 0 && !l.Newest.IsZero() && age < quiet {
			return fmt.Errorf("its newest segment is %s old, want %s: stop its writers first, or add --force: %w", max(age, 0).Round(time.Second), quiet, ErrBusy)
		}
		if l.Manifest.Objects > 0 || len(l.segments) > 0 {
			if _, err := catalog.Commit(ctx, store, tenant, func(m catalog.Manifest, now time.Time) (catalog.Manifest, error) {
				return m.Clear(now, l.segments), nil
			}); err != nil {
				return err
			}
		}
		if len(l.data) == 0 {
			return nil
		}
		if err := r.remove(ctx, store, l.data); err != nil {
			return err
		}
	}
	return fmt.Errorf("new objects came %d times: stop its writers first: %w", maxPasses, ErrBusy)
}

// finish deletes the manifests of a tenant without data, if it is time.
func (r *Result) finish(ctx context.Context, store objstore.Store, tenant string) error {
	m, _, err := catalog.ReadManifest(ctx, store, tenant)
	if err != nil {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	from, ok := m.Vacant()
	if ok && now.Before(from) {
		r.KeptUntil = from
		return nil
	}
	l, err := Look(ctx, store, tenant)
	if err != nil {
		return err
	}
	if !ok || len(l.data) > 0 {
		return fmt.Errorf("new objects came: stop its writers first: %w", ErrBusy)
	}
	if err := r.remove(ctx, store, l.history); err != nil {
		return err
	}
	if l.Manifest.Objects == 0 {
		return nil
	}
	// Last. A segment that has come since the listing is too young to be in a block that the
	// manifest names.
	return r.remove(ctx, store, []string{key.Manifest(tenant)})
}

// remove deletes objects. Those that are gone already do not matter.
func (r *Result) remove(ctx context.Context, store objstore.Store, keys []string) error {
	err := telemetry.Each(ctx, deleters, keys, func(ctx context.Context, _ int, k string) error { return store.Delete(ctx, k) })
	if err != nil {
		return err
	}
	r.Deleted += int64(len(keys))
	return nil
}
