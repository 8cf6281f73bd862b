package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/replica"
)

// GoneError reports that objects of a snapshot were gone, and objects of the snapshot taken next as
// well. Replaced objects are deleted only after the compactor's deletion delay, so the store loses
// objects, or the delay is shorter than a query.
type GoneError struct{ Err error }

// Error implements error.
func (e *GoneError) Error() string {
	return fmt.Sprintf("objects vanished twice during a read; is the compactor's deletion delay longer than the longest query? %v", e.Err)
}

// Unwrap returns the store's error.
func (e *GoneError) Unwrap() error { return e.Err }

// TooOldError reports that the state that a query asks for (as_of) can no longer be read. Its text
// names the oldest that can.
type TooOldError struct{ Err error }

// Error implements error.
func (e *TooOldError) Error() string { return e.Err.Error() }

// Unwrap returns the catalog's error.
func (e *TooOldError) Unwrap() error { return e.Err }

// QueryLimit marks an error that the HTTP API answers with 422: the query needs too much.
func (*TooOldError) QueryLimit() bool { return true }

// Range is a time range that one PromQL query, or one other read, asks for. All of its reads of
// one moment see the same snapshot, which the first of them takes. It is safe for concurrent use.
type Range struct {
	cache      *Cache
	MinT, MaxT int64 // ms, inclusive, within what keys can name

	mu    sync.Mutex
	taken []*extent // one of a moment; none is ever changed
	wide  bool      // what is taken from now on is wide
}

// extent is a snapshot of the range, or of one that is wider by replica.Around on both sides.
type extent struct {
	*catalog.Snapshot
	moment moment
	wide   bool
}

// Range returns the range [mint, maxt] (ms).
func (s *Cache) Range(mint, maxt int64) *Range {
	return &Range{cache: s, MinT: max(mint, key.MinTime), MaxT: min(maxt, key.MaxTime)}
}

// Clip returns the part of [mint, maxt] (ms) that is in the range.
func (r *Range) Clip(mint, maxt int64) (int64, int64) {
	return max(mint, r.MinT), min(maxt, r.MaxT)
}

// snapshot returns the range's snapshot for ctx's tenant and time; fresh replaces it by a new one.
func (r *Range) snapshot(ctx context.Context, fresh bool) (e *extent, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	req := request.From(ctx)
	m := moment{tenant.From(ctx), req.AsOf.Round(0).UTC()} // equal times are equal keys
	i := slices.IndexFunc(r.taken, func(e *extent) bool { return e.moment == m })
	if i >= 0 && !fresh && (r.taken[i].wide || !r.wide) {
		return r.taken[i], nil
	}
	if snap, ok := req.Snapshot.Take(m.tenant); ok {
		e = &extent{&snap, m, req.Snapshot.Wide}
	} else {
		mint, maxt := r.MinT, r.MaxT
		if r.wide && mint <= maxt {
			mint, maxt = max(mint-replica.Around, key.MinTime), min(maxt+replica.Around, key.MaxTime)
		}
		shared, err := r.cache.take(ctx, m, mint, maxt)
		if err != nil {
			return nil, err
		}
		e = &extent{shared, m, r.wide}
	}
	if i >= 0 {
		r.taken[i] = e
	} else {
		r.taken = append(r.taken, e)
	}
	return e, nil
}

// Read calls fn with the snapshot, and once more with a fresh one if an object was gone: compaction
// has replaced it by an object that the fresh snapshot has. An object that is damaged is read once
// more, from the store. If it still is, the read fails or fn is called without the object,
// depending on the settings. The annotations name the objects without which fn was called last. With
// a pinned snapshot, an object that is gone is an error, and so is request.ErrNarrow below.
func (r *Range) Read(ctx context.Context, fn func(catalog.Snapshot) error) (annotations.Annotations, error) {
	return r.read(ctx, func(snap *catalog.Snapshot, _ bool) error { return fn(*snap) })
}

// ReadWide is Read for a fn that may need the objects of a range that is wider by replica.Around on
// both sides. wide reports whether the snapshot has them. If fn returns request.ErrNarrow, it is
// called again with one that has. fn may keep the snapshot, but does not change it.
func (r *Range) ReadWide(ctx context.Context, fn func(snap *catalog.Snapshot, wide bool) error) (annotations.Annotations, error) {
	notes, err := r.read(ctx, fn)
	if errors.Is(err, request.ErrNarrow) && !request.From(ctx).Snapshot.IsPinned() {
		r.mu.Lock()
		r.wide = true
		r.mu.Unlock()
		notes, err = r.read(ctx, fn)
	}
	return notes, err
}

func (r *Range) read(ctx context.Context, fn func(snap *catalog.Snapshot, wide bool) error) (annotations.Annotations, error) {
	s, left := r.cache, &leftOut{}
	for _, fresh := range []bool{false, true} {
		e, err := r.snapshot(ctx, fresh)
		if err != nil {
			return left.notes, err
		}
		err = s.reading(ctx, left, e.Snapshot, func(snap *catalog.Snapshot) error { return fn(snap, e.wide) })
		switch {
		case !errors.Is(err, objstore.ErrNotFound), request.From(ctx).Snapshot.IsPinned():
			return left.notes, err
		case fresh:
			return left.notes, &GoneError{err}
		}
		s.mu.Lock()
		s.epoch++ // reads that begin from now on take new snapshots
		s.mu.Unlock()
		s.metrics.Replans.Inc()
		s.logger.Debug("replan a read whose objects are gone", "tenant", e.Tenant, "err", err)
	}
	return left.notes, nil
}

// span is the range of time from mint to maxt (ms, inclusive). The zero value is empty.
type span struct{ mint, maxt int64 }

// with returns the smallest span that has both.
func (s span) with(o span) span {
	switch {
	case s == span{}:
		return o
	case o == span{}:
		return s
	}
	return span{min(s.mint, o.mint), max(s.maxt, o.maxt)}
}

// covers reports whether the span has all of [mint, maxt] (ms).
func (s span) covers(mint, maxt int64) bool {
	return s != span{} && s.mint <= mint && s.maxt >= maxt
}
