// Package query answers PromQL from segments and blocks: selectors are resolved on series tables in memory, what SQL can evaluate of an
// expression DuckDB does over their Parquet, and the upstream engine evaluates the rest.
//
//	selector → snapshot (LIST, manifest) → footers, meta.json → series tables (index) → series and their places
//	  pushed: → plan → statement over row groups and segments → DuckDB → series on the step grid → engine
//	  others: → pages of row groups, lists of segments → samples → engine
//
// A segment's row of a series carries its samples; a block's row says which rows of its sample files they are.
package query

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/metrics"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/query/workdir"
	"github.com/promlake/promlake/internal/tenant"
)

// Stage is the query stage. It implements storage.SampleAndChunkQueryable and storage.ExemplarQueryable; the tenant of a
// read is the one that its context carries. It is safe for concurrent use.
type Stage struct {
	settings  Settings
	store     objstore.Store
	logger    *slog.Logger
	now       func() time.Time
	metrics   *metrics.Metrics
	work      *workdir.Dir
	files     *source.Files
	snapshots *snapshot.Cache
	index     *index.Cache
	tables    *lookup.Tables
	samples   *samples.Reader
	db        *duck.DB
	engine    *engine
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
	m := metrics.New(reg, now)
	work := &workdir.Dir{Configured: s.CacheDir}
	st := &Stage{
		settings: s, store: store, logger: logger, now: now, metrics: m, work: work,
		files: source.New(source.Settings{
			CacheBytes: s.CacheBytes, MemoryBytes: s.IndexCacheBytes, FooterBytes: s.FooterCacheBytes,
			MaxFetchedBytes: s.MaxFetchedBytes, Concurrency: s.FetchConcurrency,
		}, store, work, m),
		index: index.NewCache(s.IndexCacheBytes),
		db: duck.New(duck.Settings{
			MemoryLimitBytes: s.MemoryLimitBytes, TempBytes: s.SpillBytes, Threads: s.Threads, Connections: s.MaxConcurrency,
			TempDir: func() (string, error) { return work.Path(workdir.Spill) }, Setup: promsql.Register,
		}),
	}
	st.snapshots = snapshot.New(snapshot.Settings{MaxStaleness: s.MaxStaleness, PartialResponse: s.PartialResponse}, store, st.files, now, m, logger)
	st.tables = lookup.New(st.files, st.index, m, s.MaxSeries, s.MaxSegments)
	st.samples = samples.New(samples.Settings{
		MaxSamples: s.MaxSamples, Threads: s.Threads, Lookback: s.LookbackDelta, CacheBytes: s.IndexCacheBytes,
	}, st.files, st.index, m)
	st.engine = newEngine(st, reg, logger)
	return st, nil
}

// Engine returns the PromQL engine. Queries on it use a Stage as their storage.Queryable, or what embeds one, or what has a method Unwrap() that
// returns one: of these it reads samples in DuckDB where it can. Others it reads as upstream's engine does.
func (s *Stage) Engine() promql.QueryEngine { return s.engine }

// Settings returns the settings with their defaults.
func (s *Stage) Settings() Settings { return s.settings }

// Warm opens DuckDB, so that the first query that needs it does not wait.
func (s *Stage) Warm() error { return s.db.Open() }

// Close waits for running statements and frees everything that the stage holds.
func (s *Stage) Close() error {
	return errors.Join(s.engine.Close(), s.db.Close(), s.work.Close())
}

// accounting returns a context whose reads are summed up until done, which logs the sum and adds it to the statistics of ctx's request.
func (s *Stage) accounting(ctx context.Context) (_ context.Context, done func(operation string, ms []*labels.Matcher, series int)) {
	st, outer := &request.Stats{}, request.From(ctx).Stats
	return request.WithStats(ctx, st), func(operation string, ms []*labels.Matcher, series int) {
		t := st.Totals()
		if outer != nil {
			outer.Add(t)
		}
		s.logger.Debug("read from storage", "tenant", tenant.From(ctx), "operation", operation, "matchers", ms, "series", series, "read", t)
	}
}
