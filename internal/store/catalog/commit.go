package catalog

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	maxRaces  = 100 // lost races of one commit
	maxUnsure = 3   // puts of one commit with unknown effect
)

// Commit changes a tenant's manifest. It is the one place where objects become or cease to be
// visible, except for segments, which are visible as soon as they are written; the commit point is
// the compare-and-swap of manifest.json.
//
// change gets the present manifest and the store's time, and returns the next manifest. It must
// have no side effect, because it is called again whenever another commit came first, and nothing
// that it returned is valid until Commit returns without error. A change that changes nothing
// writes nothing.
//
//	read manifest.json ─▶ change ─▶ list manifests/ ─▶ swap manifest.json if it is what was read
//	        ▲                                            │   └─▶ copy the new one to manifests/<its id>.json
//	        └────────────────────────────────────────────┘
//	          precondition failed: lost a race; or unknown effect
//
// If there is no copy of what was read, because its committer died, it is copied before the swap.
// So every manifest but the present one has a copy, for as long as it is part of the readable
// history.
//
// A copy whose id is above that of the manifest proves that the manifest was newer once: an
// operator restored an older one. Objects that it names may be deleted, and segments that it
// considers live may be in blocks that it does not know. So the commit is refused.
//
// When the effect of a swap is unknown, the manifest is read again: the change took effect if its
// id is the manifest's, or if there is a copy with that id, because every successor first copies
// what it replaces. So a change is never applied twice.
//
// An error of change is returned, wrapped. After other errors nothing was changed, unless they wrap
// ErrUnknownEffect. In no case may the caller delete objects that the change names: garbage
// collection decides which deletions are safe.
func Commit(ctx context.Context, store Store, tenant string, change Change) (Manifest, error) {
	return CommitAfter(ctx, store, tenant, Version{}, change)
}

// CommitAfter is Commit. It does not decode the present manifest if that still is the version known.
func CommitAfter(ctx context.Context, store Store, tenant string, known Version, change Change) (Manifest, error) {
	c := &commit{store: store, tenant: tenant, known: known, change: change}
	m, err := c.run(ctx)
	if err != nil && len(c.unsure) > 0 {
		err = fmt.Errorf("%w: %w", ErrUnknownEffect, err)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("commit manifest of tenant %s: %w", tenant, err)
	}
	return m, nil
}

// Change returns the manifest that is to follow m, at a time of the store's clock.
type Change func(m Manifest, now time.Time) (Manifest, error)

type commit struct {
	store  Store
	tenant string
	known  Version
	change Change

	races  int
	unsure []Manifest // swaps with unknown effect; at most one of them took effect or will
	puts   int        // with unknown effect
}

// errAgain requests another attempt.
var errAgain = errors.New("again")

func (c *commit) run(ctx context.Context) (Manifest, error) {
	for {
		m, err := c.attempt(ctx)
		if !errors.Is(err, errAgain) {
			return m, err
		}
		if err := objstore.AfterRace(ctx, c.races+c.puts); err != nil {
			return Manifest{}, err
		}
	}
}

func (c *commit) attempt(ctx context.Context) (Manifest, error) {
	cur, err := readManifest(ctx, c.store, c.tenant, c.known)
	if err != nil {
		return Manifest{}, err
	}
	if m, ok, err := c.landed(ctx, cur.Manifest); ok || err != nil {
		return m, err
	}
	now, err := c.store.Now(ctx)
	if err != nil {
		return Manifest{}, err
	}
	next, err := c.change(cur.clone(), now)
	if err != nil {
		return Manifest{}, err
	}
	if next.equal(&cur.Manifest) {
		return cur.Manifest, nil
	}
	if next, err = cur.seal(next, now); err != nil {
		return Manifest{}, err
	}
	copied, err := c.fence(ctx, cur)
	if err == nil && !copied {
		err = c.keepCurrent(ctx, cur)
	}
	if err != nil {
		return Manifest{}, err
	}
	return next, c.swap(ctx, cur, next)
}

// fence checks that cur is not the successor of a newer manifest, and reports whether there is a
// copy of cur. Only manifests that were current have copies.
func (c *commit) fence(ctx context.Context, cur stored) (copied bool, err error) {
	copies, err := listCopies(ctx, c.store, c.tenant, cur.ID)
	if err != nil {
		return false, err
	}
	newest := cur.ID
	for _, other := range copies {
		newest, copied = later(newest, other.id), copied || other.id == cur.ID
	}
	if newest == cur.ID {
		return copied, nil
	}
	again, err := readManifest(ctx, c.store, c.tenant, Version{})
	if err != nil {
		return copied, err
	}
	if again.etag != cur.etag {
		return copied, c.lost()
	}
	return copied, fmt.Errorf("it is of %s (generation %d), but was of %s or later before: put %s in its place, or, if the loss of what is newer is wanted, delete that object: %w",
		cur.Time().UTC().Format(time.RFC3339), cur.Generation, ulid.Time(newest.Time()).UTC().Format(time.RFC3339), key.ManifestCopy(c.tenant, newest), ErrRestored)
}

// keepCurrent copies the manifest that was read.
func (c *commit) keepCurrent(ctx context.Context, cur stored) error {
	if cur.raw == nil { // it was not decoded
		again, err := readManifest(ctx, c.store, c.tenant, Version{})
		if err != nil {
			return err
		}
		if again.etag != cur.etag {
			return c.lost()
		}
		cur = again
	}
	return c.keep(ctx, cur.ID, cur.raw)
}

// keep copies a manifest that is or was current.
func (c *commit) keep(ctx context.Context, id ulid.ULID, raw []byte) error {
	_, err := c.store.Put(ctx, key.ManifestCopy(c.tenant, id), bytes.NewReader(raw), objstore.Condition{IfAbsent: true})
	if err != nil && !errors.Is(err, objstore.ErrPrecondition) {
		return fmt.Errorf("copy manifest: %w", err)
	}
	return nil
}

// lost counts an attempt that another commit preceded.
func (c *commit) lost() error {
	if c.races++; c.races > maxRaces {
		return fmt.Errorf("other commits came first %d times, which is the limit: %w", maxRaces, ErrConflict)
	}
	return errAgain
}

// seal makes next the successor of m.
func (m Manifest) seal(next Manifest, now time.Time) (Manifest, error) {
	id, err := ulid.New(uint64(m.at(now)), rand.Reader)
	if err != nil {
		return Manifest{}, fmt.Errorf("mint id: %w", err)
	}
	next.Version, next.Generation, next.ID, next.Parent = ManifestVersion, m.Generation+1, id, m.ID
	return next, nil
}

// swap replaces cur by next.
func (c *commit) swap(ctx context.Context, cur stored, next Manifest) error {
	body, err := Encode(next)
	if err != nil {
		return err
	}
	// The commit point.
	_, err = c.store.Put(ctx, key.Manifest(c.tenant), bytes.NewReader(body), objstore.Condition{IfAbsent: cur.etag == "", IfMatch: cur.etag})
	switch {
	case err == nil:
		c.unsure = nil // all of them had the same parent as next or an earlier one
		// This copy shows others if an older manifest is restored. If it is missing, the next
		// commit writes it.
		_ = c.keep(ctx, next.ID, body)
		return nil
	case errors.Is(err, objstore.ErrPrecondition):
		return c.lost()
	}
	c.unsure = append(c.unsure, next)
	if c.puts++; c.puts > maxUnsure {
		return fmt.Errorf("failed %d times, the limit is %d: %w", c.puts, maxUnsure, err)
	}
	return errAgain
}

// landed searches cur and its history for the swaps with unknown effect, and drops those that can
// no longer take effect.
func (c *commit) landed(ctx context.Context, cur Manifest) (Manifest, bool, error) {
	var open []Manifest
	for _, u := range c.unsure {
		found, lost, err := c.look(ctx, u, cur)
		if err != nil {
			return Manifest{}, false, err
		}
		if found {
			c.unsure = nil
			return u, true, nil
		}
		if !lost {
			open = append(open, u)
		}
	}
	c.unsure = open
	return Manifest{}, false, nil
}

// look reports whether u is cur or an ancestor of it, and whether it can no longer become one.
func (c *commit) look(ctx context.Context, u, cur Manifest) (found, lost bool, err error) {
	switch {
	case u.ID == cur.ID || u.ID == cur.Parent:
		return true, false, nil
	case cur.Generation < u.Generation:
		return false, cur.ID != u.Parent, nil
	case cur.Generation == u.Generation:
		return false, true, nil
	}
	_, err = get(ctx, c.store, key.ManifestCopy(c.tenant, u.ID), Version{})
	if err == nil || !errors.Is(err, objstore.ErrNotFound) {
		return err == nil, false, err
	}
	// The copy was never written, or it is pruned. The current manifest shows which.
	if cur, _, err = ReadManifest(ctx, c.store, c.tenant); err != nil {
		return false, false, err
	}
	if u.Generation < cur.Oldest.Generation {
		return false, false, fmt.Errorf("history before generation %d is pruned, the commit was %d", cur.Oldest.Generation, u.Generation)
	}
	return u.ID == cur.Oldest.ID, u.ID != cur.Oldest.ID, nil
}
