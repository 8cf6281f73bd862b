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
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/metrics"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/query/workdir"
)

// Stage is the query stage. It implements storage.SampleAndChunkQueryable and storage.ExemplarQueryable;
// the tenant of a read is the one that its context carries. It is safe for concurrent use.
type Stage struct {
	*data
	settings Settings
	work     *workdir.Dir
	db       *duck.DB
	exec     *executor
	engine   *engine
}

var (
	_ storage.SampleAndChunkQueryable = (*Stage)(nil)
	_ storage.ExemplarQueryable       = (*Stage)(nil)
)

// New returns a query stage over store. It does no I/O: the first read opens directories and DuckDB.
// reg may be nil.
func New(s Settings, store objstore.Store, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Stage, error) {
	s, err := s.WithDefaults()
	if err != nil {
		return nil, err
	}
	m, work, cache := metrics.New(reg, now), &workdir.Dir{Configured: s.CacheDir}, index.NewCache(s.IndexCacheBytes)
	files := source.New(source.Settings{
		CacheBytes: s.CacheBytes, MemoryBytes: s.IndexCacheBytes, FooterBytes: s.FooterCacheBytes,
		MaxFetchedBytes: s.MaxFetchedBytes, Concurrency: s.FetchConcurrency,
	}, store, work, m)
	snapshots := snapshot.New(snapshot.Settings{MaxStaleness: s.MaxStaleness, PartialResponse: s.PartialResponse}, store, files, now, m, logger)
	tables := lookup.New(files, cache, m, s.MaxSeries, s.MaxSegments)
	reader := samples.New(samples.Settings{
		MaxSamples: s.MaxSamples, Threads: s.Threads, Lookback: s.LookbackDelta, CacheBytes: s.IndexCacheBytes,
	}, files, cache, m)
	db := duck.New(duck.Settings{
		MemoryLimitBytes: s.MemoryLimitBytes, TempBytes: s.SpillBytes, Threads: s.Threads, Connections: s.MaxConcurrency,
		TempDir: func() (string, error) { return work.Path(workdir.Spill) }, Setup: promsql.Register,
	})
	x := &executor{
		settings: executorSettings{
			maxSamples: s.MaxSamples, threads: s.Threads, queryMemoryBytes: s.QueryMemoryBytes, duckMemoryBytes: s.MemoryLimitBytes,
			fetchBytesPerSecond: s.FetchBytesPerSecond, samplesPerSecond: s.SamplesPerSecond,
		},
		snapshots: snapshots, files: files, tables: tables, samples: reader, db: db, metrics: m, logger: logger,
	}
	e := newEngine(engineSettings{
		maxConcurrency: s.MaxConcurrency, maxSamples: s.MaxSamples, maxFetchedBytes: s.MaxFetchedBytes, maxSubquerySteps: s.MaxSubquerySteps,
		queryMemoryBytes: s.QueryMemoryBytes, minPushedSamples: s.MinPushedSamples, timeout: s.Timeout, lookback: s.LookbackDelta,
		delayedNameRemoval: s.DelayedNameRemoval, useStartTimestamps: s.UseStartTimestamps,
	}, x, reg, logger)
	return &Stage{
		data:     &data{snapshots: snapshots, files: files, tables: tables, samples: reader, metrics: m, logger: logger, now: now, recentWindow: s.RecentWindow},
		settings: s, work: work, db: db, exec: x, engine: e,
	}, nil
}

// Engine returns the PromQL engine. It reads samples in DuckDB where it can if a query's
// storage.Queryable is a Stage, or embeds one, or has a method Unwrap() that returns one. Others it
// reads as upstream's engine does.
func (s *Stage) Engine() promql.QueryEngine { return s.engine }

// Executor lets the engine push parts of a query down to the stage.
func (s *Stage) Executor() *executor { return s.exec }

// Explain plans a query and describes the plan. It reads no samples unless the question asks to run the
// statements. The tenant is that of the context. The limits are those of the query itself.
func (s *Stage) Explain(ctx context.Context, q Question) (*Explanation, error) {
	return explain(ctx, s.engine, s, q)
}

// Settings returns the settings with their defaults.
func (s *Stage) Settings() Settings { return s.settings }

// Warm opens DuckDB, so that the first query that needs it does not wait.
func (s *Stage) Warm() error { return s.db.Open() }

// Close waits for running statements and frees everything that the stage holds.
func (s *Stage) Close() error {
	return errors.Join(s.engine.Close(), s.db.Close(), s.work.Close())
}
