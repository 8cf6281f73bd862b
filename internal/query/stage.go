// Package query answers PromQL from segments: selectors become SQL that DuckDB runs over the segments' Parquet, and the
// upstream engine evaluates what they return.
//
//	selector → snapshot (LIST) → footers → plan (source, predicate, scan) → DuckDB → series → engine
package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/duck"
)

// Stage is the query stage. It implements storage.SampleAndChunkQueryable and storage.ExemplarQueryable; the tenant of a
// read is the one that its context carries. It is safe for concurrent use.
type Stage struct {
	settings Settings
	store    objstore.Store
	logger   *slog.Logger
	now      func() time.Time
	metrics  *metrics
	work     *workdir
	files    *files
	db       *duck.DB
	engine   *promql.Engine
	seed     uint64
}

var (
	_ storage.SampleAndChunkQueryable = (*Stage)(nil)
	_ storage.ExemplarQueryable       = (*Stage)(nil)
)

// New returns a query stage over store. It does no I/O: directories and DuckDB are opened by the first read. reg may be nil.
func New(s Settings, store objstore.Store, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Stage, error) {
	s, err := s.WithDefaults()
	if err != nil {
		return nil, err
	}
	m := newMetrics(reg)
	work := &workdir{configured: s.CacheDir}
	local, _ := store.(objstore.Local)
	st := &Stage{
		settings: s, store: store, logger: logger, now: now, metrics: m, work: work, seed: rand.Uint64(),
		files: &files{
			local: local, cache: newDiskCache(store, work, s.CacheBytes, m),
			footers: newFooters(store, s.FooterCacheBytes, m), concurrency: s.FetchConcurrency,
		},
		db: duck.New(duck.Settings{
			MemoryLimitBytes: s.MemoryLimitBytes, Threads: s.Threads, Connections: s.MaxConcurrency,
			TempDir: func() (string, error) { return work.path(spillDir) },
		}),
	}
	st.engine = newEngine(&s, reg, logger)
	return st, nil
}

// Engine returns the PromQL engine. Queries on it use the Stage as their storage.Queryable.
func (s *Stage) Engine() *promql.Engine { return s.engine }

// Settings returns the settings with their defaults.
func (s *Stage) Settings() Settings { return s.settings }

// Close waits for running statements and frees everything that the stage holds.
func (s *Stage) Close() error {
	return errors.Join(s.engine.Close(), s.db.Close(), s.work.close())
}

// snapshot lists the segments that may hold samples of [mint, maxt] (ms).
func (s *Stage) snapshot(ctx context.Context, tenant string, mint, maxt int64) (catalog.Snapshot, error) {
	snap, err := catalog.Take(ctx, s.store, tenant, mint, maxt)
	if err != nil {
		return snap, err
	}
	if snap.Skipped > 0 {
		s.metrics.skipped.Add(float64(snap.Skipped))
		s.logger.Warn("objects among the segments are not segments", "tenant", tenant, "objects", snap.Skipped)
	}
	return snap, nil
}

// locate returns the segments of a snapshot that overlap [mint, maxt] (ms) and may hold series that match one of sets; no sets
// match everything.
func (s *Stage) locate(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (selection, error) {
	segs, err := s.files.locate(ctx, snap.Segments)
	if err != nil {
		return selection{}, err
	}
	sel := selection{unread: math.MinInt64}
	for _, seg := range segs {
		switch {
		case seg.footer.Rows == 0 || seg.footer.MinT > maxt || !seg.footer.mayMatch(sets):
		case seg.footer.MaxT < mint:
			sel.unread = max(sel.unread, seg.footer.MaxT)
		default:
			sel.segs = append(sel.segs, seg)
		}
	}
	if len(sel.segs) > s.settings.MaxSegments {
		return selection{}, s.settings.tooManySegments()
	}
	return sel, nil
}

// selection is what a read takes from a snapshot.
type selection struct {
	segs   []located // oldest first
	unread int64     // ms: the latest sample in the segments that were left out because they end too early
}

// with opens the segments and calls fn with them as a source, which is valid until fn returns. It is not called for no segments.
func (s *Stage) with(ctx context.Context, sel selection, fn func(src *source) error) error {
	if len(sel.segs) == 0 {
		return nil
	}
	paths, release, err := s.files.openAll(ctx, sel.segs)
	if err != nil {
		return err
	}
	defer release()
	src := newSource(sel)
	src.paths = paths
	s.metrics.segments.Add(float64(len(sel.segs)))
	s.metrics.rows.Add(float64(src.rows()))
	return fn(src)
}

// measure runs an operation under its name.
func (s *Stage) measure(operation string, fn func() error) error {
	start := s.now()
	err := fn()
	s.metrics.seconds.WithLabelValues(operation).Observe(s.now().Sub(start).Seconds())
	if err != nil {
		s.metrics.errors.WithLabelValues(operation).Inc()
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}
