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

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/query/lru"
	"github.com/promlake/promlake/internal/query/metrics"
	"github.com/promlake/promlake/internal/query/source"
)

// Settings configure how reads share snapshots.
type Settings struct {
	MaxStaleness    time.Duration // age of a snapshot that a read may use; 0 = none is shared
	PartialResponse bool          // reads answer without damaged objects
}

// Cache takes snapshots of tenants. Reads that begin within maxStaleness of each other share one if
// it covers their ranges, and so do concurrent reads. The age of a snapshot counts from the moment
// when it was begun: it has everything that was stored before. It is safe for concurrent use.
type Cache struct {
	settings Settings
	store    objstore.Store
	files    *source.Files
	now      func() time.Time
	metrics  *metrics.Metrics
	logger   *slog.Logger

	flights fetch.Flight[*aged]

	mu    sync.Mutex
	epoch uint64          // of aged; counts the reads that found an object gone
	last  *lru.Map[*aged] // by moment
}

// aged is a snapshot of [mint, maxt] (ms).
type aged struct {
	catalog.Snapshot
	begun      time.Time
	epoch      uint64
	mint, maxt int64
}

// maxSnapshots is the number of moments whose last snapshots are kept.
const maxSnapshots = 256

// New returns an empty cache. It does no I/O.
func New(s Settings, store objstore.Store, f *source.Files, now func() time.Time, m *metrics.Metrics, logger *slog.Logger) *Cache {
	return &Cache{settings: s, store: store, files: f, now: now, metrics: m, logger: logger, last: lru.New[*aged](maxSnapshots)}
}

// moment is the tenant whose data is read, and the time as of which it is read.
type moment struct {
	tenant string
	asOf   time.Time // zero = now
}

// String returns a key: equal for equal moments only.
func (m moment) String() string { return fmt.Sprintf("%d %s", m.asOf.UnixNano(), m.tenant) }

// take returns the objects that may hold samples of [mint, maxt] (ms) at a moment.
func (s *Cache) take(ctx context.Context, m moment, mint, maxt int64) (catalog.Snapshot, error) {
	if mint > maxt {
		return catalog.Snapshot{Tenant: m.tenant}, nil
	}
	if s.settings.MaxStaleness == 0 {
		t, err := s.fresh(ctx, m, mint, maxt, mint, maxt)
		if err != nil {
			return catalog.Snapshot{}, err
		}
		return t.Snapshot, nil
	}
	for asked := s.now(); ; {
		t, err := s.shared(ctx, m, mint, maxt)
		if err != nil {
			return catalog.Snapshot{}, err
		}
		// A snapshot that was begun long before this read waited for it may be too old by now.
		if asked.Sub(t.begun) <= s.settings.MaxStaleness {
			return t.Narrow(mint, maxt), nil
		}
	}
}

// shared returns a snapshot that covers [mint, maxt] and that other reads may use as well. It
// covers whole windows, by which segments are listed.
func (s *Cache) shared(ctx context.Context, m moment, mint, maxt int64) (*aged, error) {
	s.mu.Lock()
	epoch := s.epoch
	e := s.last.Get(m.String())
	hit := e != nil && e.Value.epoch == epoch && s.now().Sub(e.Value.begun) <= s.settings.MaxStaleness && e.Value.mint <= mint && e.Value.maxt >= maxt
	var t *aged
	if hit {
		t = e.Value
	}
	s.mu.Unlock()
	s.metrics.Looked("snapshot", hit)
	if hit {
		return t, nil
	}
	from, to := int64(key.WindowOf(mint)), min(key.WindowOf(maxt).End()-1, key.MaxTime)
	return s.flights.Do(ctx, fmt.Sprintf("%d %d %d %s", epoch, from, to, m), func() (*aged, error) {
		return s.fresh(ctx, m, from, to, mint, maxt)
	})
}

// fresh takes a snapshot of [from, to] (ms), for a read of [mint, maxt], and keeps it.
func (s *Cache) fresh(ctx context.Context, m moment, from, to, mint, maxt int64) (*aged, error) {
	t := &aged{begun: s.now(), mint: from, maxt: to}
	s.mu.Lock()
	t.epoch = s.epoch
	var known *catalog.Manifest
	if e := s.last.Get(m.String()); e != nil {
		known = &e.Value.Manifest
	}
	s.mu.Unlock()

	var err error
	if m.asOf.IsZero() {
		t.Snapshot, err = s.current(ctx, m.tenant, known, from, to, mint, maxt)
	} else {
		t.Snapshot, err = catalog.TakeAsOf(ctx, s.store, m.tenant, m.asOf, from, to)
	}
	switch {
	case errors.Is(err, catalog.ErrTooOld):
		return nil, &TooOldError{err}
	case err != nil:
		return nil, err
	}
	// Generation 0 means that there is no manifest: the tenant was deleted. Its next one has a
	// later id.
	if m.asOf.IsZero() && known != nil && t.Manifest.Generation > 0 && t.Manifest.ID.Compare(known.ID) < 0 {
		return nil, fmt.Errorf("the manifest of tenant %s went back from generation %d to %d: %w", m.tenant, known.Generation, t.Manifest.Generation, catalog.ErrRestored)
	}
	if t.Skipped > 0 {
		s.metrics.Skipped.Add(float64(t.Skipped))
		s.logger.Warn("objects among the segments are not segments", "tenant", m.tenant, "objects", t.Skipped)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.last.Get(m.String()); e == nil {
		s.last.Add(m.String(), t, 1)
		s.last.Evict(0)
	} else if !e.Value.begun.After(t.begun) {
		e.Value = t
	}
	return t, nil
}

// current takes the snapshot of now. The manifest must be read after the listing (see catalog). A
// remote store answers late, so the objects that the read will probably ask for next are fetched
// meanwhile: an earlier manifest, known or read beside the listing, names the blocks. The manifest
// of the snapshot itself is always read after the listing.
func (s *Cache) current(ctx context.Context, tenantID string, known *catalog.Manifest, from, to, mint, maxt int64) (catalog.Snapshot, error) {
	if s.files.Local() {
		return catalog.Take(ctx, s.store, tenantID, from, to)
	}
	var listing catalog.Listing
	guess := known
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		listing, err = catalog.List(gctx, s.store, tenantID, from, to)
		return err
	})
	g.Go(func() error {
		if known != nil {
			s.files.Warm(gctx, catalog.Snapshot{Tenant: tenantID, Blocks: known.Blocks}.Narrow(mint, maxt))
			return nil
		}
		if m, _, err := catalog.ReadManifest(gctx, s.store, tenantID); err == nil { // the read below reports an error
			guess = &m
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return catalog.Snapshot{}, err
	}
	var m catalog.Manifest
	g, gctx = errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		m, _, err = catalog.ReadManifest(gctx, s.store, tenantID)
		return err
	})
	if guess != nil {
		g.Go(func() error {
			s.files.Warm(gctx, listing.With(*guess).Narrow(mint, maxt))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return catalog.Snapshot{}, err
	}
	return listing.With(m), nil
}
