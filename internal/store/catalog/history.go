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

// TakeAsOf is Take as it was at a moment: with the newest manifest that was committed until then
// (by its committer's clock), and of the segments those that were begun until then. The error wraps
// ErrTooOld and names the oldest readable time if that manifest is no longer readable.
func TakeAsOf(ctx context.Context, store Reader, tenant string, asOf time.Time, mint, maxt int64) (Snapshot, error) {
	for retry := true; ; retry = false {
		snap, err := takeAsOf(ctx, store, tenant, asOf.UnixMilli(), mint, maxt)
		// The manifest was pruned after it was found. The next attempt finds that it is too old, or
		// succeeds.
		if retry && errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		return snap, err
	}
}

func takeAsOf(ctx context.Context, store Reader, tenant string, asOf, mint, maxt int64) (Snapshot, error) {
	l, err := List(ctx, store, tenant, mint, maxt)
	if err != nil || l.mint > l.maxt {
		return l.snap, err
	}
	// The check that the manifest is readable comes after the listing: then the listing had every
	// object that it counts on.
	m, err := manifestAsOf(ctx, store, tenant, asOf)
	if err != nil {
		return Snapshot{}, err
	}
	l.snap.Segments = slices.DeleteFunc(l.snap.Segments, func(r SegmentRef) bool { return int64(r.Rank.Time()) > asOf })
	return l.With(m), nil
}

// manifestAsOf returns the newest readable manifest with a time of at most asOf (ms).
func manifestAsOf(ctx context.Context, store Reader, tenant string, asOf int64) (Manifest, error) {
	cur, err := readManifest(ctx, store, tenant, Version{})
	if err != nil {
		return Manifest{}, err
	}
	if int64(cur.ID.Time()) <= asOf {
		return cur.Manifest, nil
	}
	copies, err := listCopies(ctx, store, tenant, ulid.ULID{})
	if err != nil {
		return Manifest{}, err
	}
	copies = slices.DeleteFunc(copies, func(c manifestCopy) bool {
		return int64(c.id.Time()) > asOf || c.id.Compare(cur.Oldest.ID) < 0
	})
	if len(copies) == 0 {
		oldest := ulid.Time(cur.Oldest.ID.Time()).UTC().Format(time.RFC3339Nano)
		return Manifest{}, fmt.Errorf("read manifest of tenant %s as of %d ms: the oldest is of %s: %w", tenant, asOf, oldest, ErrTooOld)
	}
	s, err := get(ctx, store, key.ManifestCopy(tenant, copies[len(copies)-1].id), Version{})
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest of tenant %s as of %d ms: %w", tenant, asOf, err)
	}
	return s.Manifest, nil
}

// manifestCopy is a listed copy of an earlier manifest.
type manifestCopy struct {
	id       ulid.ULID
	modified time.Time // the manifest was committed before, and replaced after
}

// listCopies returns the copies of manifests whose id is not below from, oldest first.
func listCopies(ctx context.Context, store objstore.Lister, tenant string, from ulid.ULID) ([]manifestCopy, error) {
	startAfter := ""
	if from != (ulid.ULID{}) {
		startAfter = key.ManifestCopy(tenant, predecessor(from))
	}
	var out []manifestCopy
	for obj, err := range store.List(ctx, key.ManifestsPrefix(tenant), startAfter) {
		if err != nil {
			return nil, fmt.Errorf("list manifests of tenant %s: %w", tenant, err)
		}
		if _, id, err := key.ParseManifestCopy(obj.Key); err == nil {
			out = append(out, manifestCopy{id: id, modified: obj.Modified})
		}
	}
	return out, nil
}
