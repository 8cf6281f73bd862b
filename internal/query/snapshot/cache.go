// Package snapshot takes consistent snapshots of tenants (which objects are live), shares recent
// ones between reads, and repeats a read whose objects are gone or damaged.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Settings configure how reads share snapshots.
type Settings struct {
	MaxStaleness    time.Duration // age of a snapshot that a read may use; 0 = none is shared
	PartialResponse bool          // reads answer without damaged objects

	// Written knows what this process wrote. nil: it only reads.
	Written Writes
}

// Writes are those of this process.
type Writes interface {
	// Last returns when the last write to a tenant ended; zero: there was none. A read uses no
	// snapshot that was begun before.
	Last(tenant string) time.Time
}

// Cache takes snapshots of tenants. Reads that begin within maxStaleness of each other share one if
// it covers their ranges, and so do concurrent reads. The age of a snapshot counts from the moment
// when it was begun: it has everything that was stored before. It is safe for concurrent use.
type Cache struct {
	settings Settings
	store    objstore.Store
	files    *source.Files
	decoded  *index.Cache // of series tables and samples
	now      func() time.Time
	metrics  *request.Metrics
	logger   *slog.Logger

	flights fetch.Flight[*aged]

	mu    sync.Mutex
	epoch uint64 // of aged; counts the reads that found an object gone
	last  *memory.LRU[moment, *kept]
}

// kept is what the cache knows of a moment. The lock of the cache guards it.
type kept struct {
	last    *aged // nil: no snapshot was taken
	running span  // of the snapshot that is being taken
	asked   span  // by reads since the last snapshot was begun
}

// aged is a snapshot of a span, in whole windows if reads may share it.
type aged struct {
	catalog.Snapshot
	span
	version catalog.Version // the manifest
	begun   time.Time
	epoch   uint64
	parts   parts
}

// maxSnapshots is the number of moments whose last snapshots are kept.
const maxSnapshots = 256

// New returns an empty cache. It does no I/O. What is in decoded of objects that a newer snapshot
// replaces is removed.
func New(s Settings, store objstore.Store, f *source.Files, decoded *index.Cache, now func() time.Time, m *request.Metrics, logger *slog.Logger) *Cache {
	return &Cache{settings: s, store: store, files: f, decoded: decoded, now: now, metrics: m, logger: logger, last: memory.NewLRU[moment, *kept](maxSnapshots)}
}

// moment is the tenant whose data is read, and the time as of which it is read.
type moment struct {
	tenant string
	asOf   time.Time // zero = now
}

// take returns the objects that may hold samples of [mint, maxt] (ms) at a moment. Others may have
// the same snapshot, which is never changed.
func (s *Cache) take(ctx context.Context, m moment, mint, maxt int64) (*catalog.Snapshot, error) {
	if mint > maxt {
		return &catalog.Snapshot{Tenant: m.tenant}, nil
	}
	if s.settings.MaxStaleness == 0 {
		t, err := s.fresh(ctx, m, span{mint, maxt}, mint, maxt)
		if err != nil {
			return nil, err
		}
		return &t.Snapshot, nil
	}
	oldest := s.now().Add(-s.settings.MaxStaleness)
	if since := request.From(ctx).Since; m.asOf.IsZero() && since.After(oldest) {
		oldest = since
	}
	if s.settings.Written != nil && m.asOf.IsZero() {
		if t := s.settings.Written.Last(m.tenant); t.After(oldest) {
			oldest = t
		}
	}
	for {
		t, err := s.shared(ctx, m, oldest, mint, maxt)
		if err != nil {
			return nil, err
		}
		// A snapshot that was begun long before this read waited for it may be too old by now.
		if !t.begun.Before(oldest) {
			return t.narrow(mint, maxt), nil
		}
	}
}

// shared returns a snapshot that covers [mint, maxt] and that other reads may use as well: one that
// was begun at oldest or later, or one that another read has begun at any time. It covers whole
// windows, by which segments are listed. A new snapshot also covers what other reads asked for
// within the last maxStaleness, so that reads of many ranges soon share one.
func (s *Cache) shared(ctx context.Context, m moment, oldest time.Time, mint, maxt int64) (*aged, error) {
	s.mu.Lock()
	k, epoch := s.kept(m), s.epoch
	k.asked = k.asked.with(span{int64(key.WindowOf(mint)), min(key.WindowOf(maxt).End()-1, key.MaxTime)})
	last := s.recent(k)
	if last != nil && !last.begun.Before(oldest) && last.covers(mint, maxt) {
		defer s.mu.Unlock()
		s.metrics.CountLookup("snapshot", true)
		return last, nil
	}
	if !k.running.covers(mint, maxt) {
		k.running = k.running.with(k.asked)
		if last != nil {
			k.running = k.running.with(last.span)
		}
	}
	want := k.running
	s.mu.Unlock()
	s.metrics.CountLookup("snapshot", false)
	return s.flights.Do(ctx, fmt.Sprintf("%d %d %d %v", epoch, want.mint, want.maxt, m), func() (*aged, error) {
		// The one that was running above may have ended before this one began.
		s.mu.Lock()
		last := s.recent(k)
		s.mu.Unlock()
		if last != nil && !last.begun.Before(oldest) && last.covers(want.mint, want.maxt) {
			return last, nil
		}
		return s.fresh(ctx, m, want, mint, maxt)
	})
}

// recent returns the last snapshot of a moment if reads may still use it. The caller locks.
func (s *Cache) recent(k *kept) *aged {
	if k.last == nil || k.last.epoch != s.epoch || s.now().Sub(k.last.begun) > s.settings.MaxStaleness {
		return nil
	}
	return k.last
}

// kept returns the entry of a moment. The caller locks.
func (s *Cache) kept(m moment) *kept {
	if e := s.last.Get(m); e != nil {
		return e.Value
	}
	k := &kept{}
	s.last.Add(m, k, 1)
	s.last.Evict(0)
	return k
}

// fresh takes a snapshot of a span, for a read of [mint, maxt] (ms), and keeps it.
func (s *Cache) fresh(ctx context.Context, m moment, of span, mint, maxt int64) (t *aged, err error) {
	t = &aged{begun: s.now(), span: of}
	s.mu.Lock()
	k := s.kept(m)
	t.epoch, k.asked = s.epoch, span{}
	before := k.last
	var known *catalog.Version // nil: no manifest was read
	if before != nil {
		known = &before.version
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.running == of {
			k.running = span{}
		}
		if err == nil && (k.last == nil || !k.last.begun.After(t.begun)) {
			k.last = t
		}
	}()
	if m.asOf.IsZero() {
		err = s.current(ctx, m.tenant, known, t, mint, maxt)
	} else {
		t.Snapshot, err = catalog.TakeAsOf(ctx, s.store, m.tenant, m.asOf, of.mint, of.maxt)
	}
	switch {
	case errors.Is(err, catalog.ErrTooOld):
		return nil, &TooOldError{err}
	case err != nil:
		return nil, err
	}
	// Generation 0 means that there is no manifest: the tenant was deleted. Its next one has a
	// later id.
	if now := t.version; m.asOf.IsZero() && known != nil && now.Generation > 0 && now.ID.Compare(known.ID) < 0 {
		return nil, fmt.Errorf("the manifest of tenant %s went back from generation %d to %d: %w", m.tenant, known.Generation, now.Generation, catalog.ErrRestored)
	}
	if m.asOf.IsZero() && before != nil {
		s.decoded.Remove(replaced(before, t)...)
	}
	if t.Skipped > 0 {
		s.metrics.Skipped.Add(float64(t.Skipped))
		s.logger.Warn("objects among the segments are not segments", "tenant", m.tenant, "objects", t.Skipped)
	}
	return t, nil
}

// current takes the snapshot of now. The manifest must be read after the listing (see catalog). A
// remote store answers late, so the objects that the read will probably ask for next are fetched
// meanwhile: an earlier manifest, known or read beside the listing, names the blocks. The manifest
// of the snapshot itself is always read after the listing.
func (s *Cache) current(ctx context.Context, tenantID string, known *catalog.Version, t *aged, mint, maxt int64) error {
	var listing catalog.Listing
	var guess catalog.Version
	if known != nil {
		guess = *known
	}
	before := guess.Manifest
	list := func(ctx context.Context) (err error) {
		listing, err = catalog.ListLive(ctx, s.store, tenantID, t.mint, t.maxt, before)
		return err
	}
	read := func(ctx context.Context) (err error) {
		t.version, err = catalog.Refresh(ctx, s.store, tenantID, guess)
		return err
	}
	if s.files.Local() {
		if err := list(ctx); err != nil {
			return err
		}
		if err := read(ctx); err != nil {
			return err
		}
	} else {
		g, gctx := errgroup.WithContext(ctx)
		g.Go(telemetry.Guard(func() error { return list(gctx) }))
		g.Go(telemetry.Guard(func() error {
			if known != nil {
				s.files.Warm(gctx, catalog.Snapshot{Tenant: tenantID, Blocks: known.Blocks}.Narrow(mint, maxt))
			} else if v, err := catalog.Refresh(gctx, s.store, tenantID, guess); err == nil { // the read below reports an error
				guess = v
			}
			return nil
		}))
		if err := g.Wait(); err != nil {
			return err
		}
		early := listing.With(guess.Manifest).Narrow(mint, maxt)
		g, gctx = errgroup.WithContext(ctx)
		g.Go(telemetry.Guard(func() error { return read(gctx) }))
		g.Go(telemetry.Guard(func() error {
			s.files.Warm(gctx, early)
			return nil
		}))
		if err := g.Wait(); err != nil {
			return err
		}
	}
	// If the manifest is older than before, whose consumed segments were not listed, all is read
	// again.
	if t.version.Generation < before.Generation {
		return s.current(ctx, tenantID, nil, t, mint, maxt)
	}
	t.Snapshot = listing.With(t.version.Manifest)
	return nil
}

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
