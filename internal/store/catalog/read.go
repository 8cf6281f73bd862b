package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Reader is the part of objstore.Store that a snapshot needs. Listings are strong: they have every
// object whose Put returned before the call, and none whose Delete did. So are reads.
type Reader interface {
	objstore.Lister
	objstore.Getter
}

// Store is the part of objstore.Store that a commit needs. Put must be atomic and honour its
// condition.
type Store interface {
	Reader
	// Now is a time that the store's clock has reached, as of objstore.Store.
	Now(ctx context.Context) (time.Time, error)
	Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (etag string, err error)
}

// ReadManifest returns a tenant's manifest and its ETag: Empty and "" if there is none.
func ReadManifest(ctx context.Context, store objstore.Getter, tenant string) (Manifest, string, error) {
	s, err := readManifest(ctx, store, tenant, Version{})
	return s.Manifest, s.etag, err
}

// Version is a manifest and its ETag; the zero value is none.
type Version struct {
	Manifest
	ETag string
}

// is reports whether etag is that of v.
func (v Version) is(etag string) bool { return etag != "" && etag == v.ETag }

// Refresh returns the version that ReadManifest reads. It does not decode the manifest if the store
// still has the version known, and then the result shares the memory of known.
func Refresh(ctx context.Context, store objstore.Getter, tenant string, known Version) (Version, error) {
	s, err := readManifest(ctx, store, tenant, known)
	return Version{s.Manifest, s.etag}, err
}

// stored is a manifest as read from the store.
type stored struct {
	Manifest
	raw      []byte
	etag     string
	modified time.Time // when it was committed, by the store's clock
}

func readManifest(ctx context.Context, store objstore.Getter, tenant string, known Version) (stored, error) {
	s, err := get(ctx, store, key.Manifest(tenant), known)
	if errors.Is(err, objstore.ErrNotFound) {
		m := Empty()
		raw, err := Encode(m)
		return stored{Manifest: m, raw: raw}, err
	}
	if err != nil {
		return stored{}, fmt.Errorf("read manifest of tenant %s: %w", tenant, err)
	}
	if !known.is(s.etag) {
		// Correct the times of what this manifest superseded, and of its floor. Its committer read
		// the store's time before the commit, possibly long before (it may have been suspended in
		// between); the store's modification time is exact. The next manifest keeps the corrected
		// times.
		at := s.modified.UnixMilli()
		for i, c := range s.Consumed {
			if c.Generation == s.Generation {
				s.Consumed[i].At = max(c.At, at)
			}
		}
		for i, r := range s.Retired {
			if r.Generation == s.Generation {
				s.Retired[i].At = max(r.At, at)
			}
		}
		if s.Oldest.Raised == s.Generation {
			s.Oldest.At = max(s.Oldest.At, at)
		}
	}
	return s, nil
}

// get reads the manifest under a key, and decodes it unless it is known.
func get(ctx context.Context, store objstore.Getter, k string, known Version) (s stored, err error) {
	r, obj, err := store.Get(ctx, k, 0, -1)
	if err != nil {
		return stored{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if obj.Size > MaxManifestBytes {
		return stored{}, fmt.Errorf("%s has %d bytes, the limit is %d: %w", k, obj.Size, MaxManifestBytes, ErrFormat)
	}
	if known.is(obj.ETag) {
		// Only after the whole body may a remote store use the connection for the next request.
		_, err = io.Copy(io.Discard, r)
		return stored{Manifest: known.Manifest, etag: obj.ETag, modified: obj.Modified}, err
	}
	raw := make([]byte, obj.Size)
	if _, err := io.ReadFull(r, raw); err != nil {
		return stored{}, err
	}
	m, err := Decode(raw)
	if err != nil {
		return stored{}, fmt.Errorf("%s: %w", k, err)
	}
	return stored{Manifest: m, raw: raw, etag: obj.ETag, modified: obj.Modified}, nil
}
