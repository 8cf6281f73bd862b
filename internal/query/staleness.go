package query

import (
	"context"
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
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// snapshots takes snapshots of tenants. For Settings.MaxStaleness one serves all reads of a tenant, as of one time, whose ranges it has; concurrent
// reads share one that is being taken. The age of a snapshot counts from the moment when it was begun: what was stored before is in it.
type snapshots struct {
	store   objstore.Store
	files   *source.Files
	maxAge  time.Duration // 0 = none is reused
	now     func() time.Time
	metrics *metrics.Metrics
	logger  *slog.Logger

	flights fetch.Flight[*taken]

	mu    sync.Mutex
	epoch uint64           // of taken; counts the reads that found an object gone
	last  *lru.Map[*taken] // by moment
}

// taken is a snapshot of [mint, maxt] (ms).
type taken struct {
	catalog.Snapshot
	begun      time.Time
	epoch      uint64
	mint, maxt int64
}

// maxSnapshots is how many tenants' last snapshots are kept.
const maxSnapshots = 256

func newSnapshots(s *Settings, store objstore.Store, f *source.Files, now func() time.Time, m *metrics.Metrics, logger *slog.Logger) *snapshots {
	return &snapshots{store: store, files: f, maxAge: s.MaxStaleness, now: now, metrics: m, logger: logger, last: lru.New[*taken](maxSnapshots)}
}

// String names the moment. It is the same for the same moment alone.
func (m moment) String() string { return fmt.Sprintf("%d %s", m.asOf.UnixNano(), m.tenant) }

// take says which objects of a tenant may hold samples of [mint, maxt] (ms), now or as of the time that ctx asks for.
func (s *snapshots) take(ctx context.Context, tenantID string, mint, maxt int64) (catalog.Snapshot, error) {
	mint, maxt = max(mint, key.MinTime), min(maxt, key.MaxTime)
	m := moment{tenant: tenantID}
	m.asOf = request.From(ctx).AsOf
	if mint > maxt {
		return catalog.Snapshot{Tenant: tenantID}, nil
	}
	if s.maxAge == 0 {
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
		// One that was long under way when this read began to wait for it may be too old by then.
		if asked.Sub(t.begun) <= s.maxAge {
			return t.Narrow(mint, maxt), nil
		}
	}
}

// shared returns a snapshot that has [mint, maxt] and that others may have taken. Segments are listed by window, so it is of whole windows.
func (s *snapshots) shared(ctx context.Context, m moment, mint, maxt int64) (*taken, error) {
	t, epoch := s.recent(m, mint, maxt)
	s.metrics.Looked("snapshot", t != nil)
	if t != nil {
		return t, nil
	}
	from, to := int64(key.WindowOf(mint)), min(key.WindowOf(maxt).End()-1, key.MaxTime)
	return s.flights.Do(ctx, fmt.Sprintf("%d %d %d %s", epoch, from, to, m), func() (*taken, error) {
		return s.fresh(ctx, m, from, to, mint, maxt)
	})
}

// recent returns the last snapshot of a moment if it can serve a read of [mint, maxt] that begins now, and the present epoch.
func (s *snapshots) recent(m moment, mint, maxt int64) (*taken, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.last.Get(m.String())
	if e == nil || e.Value.epoch != s.epoch || s.now().Sub(e.Value.begun) > s.maxAge || e.Value.mint > mint || e.Value.maxt < maxt {
		return nil, s.epoch
	}
	return e.Value, s.epoch
}

// forget is told that an object of a snapshot is gone: reads that begin now take new ones.
func (s *snapshots) forget() {
	s.mu.Lock()
	s.epoch++
	s.mu.Unlock()
}

// fresh takes a snapshot of [from, to] (ms) and keeps it. A read of [mint, maxt] is what it is taken for.
func (s *snapshots) fresh(ctx context.Context, m moment, from, to, mint, maxt int64) (*taken, error) {
	t := &taken{begun: s.now(), mint: from, maxt: to}
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
	if err != nil {
		return nil, tooOld(err)
	}
	// A manifest of generation 0 is none: the tenant was deleted. Its next one has a later id.
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

// current takes the snapshot of now. The manifest must be read after the listing (see catalog). A remote store answers late, so what
// the read will ask for next is fetched meanwhile, as far as it can be guessed: an earlier manifest, the one known or else one that is read beside
// the listing, names the blocks. That of the snapshot is always read after.
func (s *snapshots) current(ctx context.Context, tenantID string, known *catalog.Manifest, from, to, mint, maxt int64) (catalog.Snapshot, error) {
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
		if m, _, err := catalog.ReadManifest(gctx, s.store, tenantID); err == nil { // else the one below says what is wrong
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
