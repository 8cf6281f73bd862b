// Package query answers PromQL from segments and blocks. A query takes this way:
//
//	engine    admits the query, pushes down parts of it, evaluates the rest with upstream's engine
//	snapshot  which objects are live
//	lookup    which series match a selector, and which rows of the objects are theirs
//	plan      which parts of the expression become SQL statements
//	samples   reads the rows of series from segments, blocks and rollups
//	exec      evaluates range functions series by series, then one SQL statement in DuckDB for each part
//
// A segment's row of a series carries its samples. A block's row locates the series' rows in its
// sample files.
package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/buckets"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/inventory"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/internal/sql"
	"github.com/promlake/promlake/internal/sql/views"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/replica"
)

// The errors that callers of a Stage distinguish.
type (
	LimitError   = request.LimitError
	DamagedError = source.DamagedError
	GoneError    = snapshot.GoneError
	TooOldError  = snapshot.TooOldError
)

// What Stage.Explain, Stage.Estimate and Stage.SQL take.
type (
	Question  = request.Question
	Statement = request.Statement
)

// Stage is the query stage. It implements storage.SampleAndChunkQueryable and
// storage.ExemplarQueryable; the tenant of a read is the one that its context carries. It is safe
// for concurrent use.
type Stage struct {
	*engine.Storage
	settings Settings
	work     *tempdir.WorkDir
	db       *duck.DB
	exec     *exec.Executor
	engine   *engine.Engine
	sql      *sql.Runner
	usage    *usage.Counter
	kept     *divide.Keeper // nil: no answer is kept
}

var (
	_ storage.SampleAndChunkQueryable = (*Stage)(nil)
	_ storage.ExemplarQueryable       = (*Stage)(nil)
)

// selectionShare is the inverse of the share of the memory for series tables and recent samples
// that is taken for what selectors matched.
const selectionShare = 4

// New returns a query stage over store. It does no I/O: the first read opens directories and
// DuckDB. reg may be nil.
func New(s Settings, store objstore.Store, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Stage, error) {
	s, err := s.WithDefaults()
	if err != nil {
		return nil, err
	}
	m, work, cache := request.NewMetrics(reg, now), &tempdir.WorkDir{Configured: s.CacheDir}, index.NewCache(s.IndexCacheBytes-s.IndexCacheBytes/selectionShare, s.IndexCacheIdle, now)
	files := source.New(source.Settings{
		CacheBytes: s.CacheBytes, MemoryBytes: s.IndexCacheBytes, FooterBytes: s.FooterCacheBytes,
		MaxFetchedBytes: s.MaxFetchedBytes, Concurrency: s.FetchConcurrency,
	}, store, work, s.Recent, m)
	snapshots := snapshot.New(snapshot.Settings{MaxStaleness: s.MaxStaleness, Written: s.Written, PartialResponse: s.PartialResponse}, store, files, cache, now, m, logger)
	tables := lookup.New(files, cache, s.IndexCacheBytes/selectionShare, s.Recent, m, s.MaxSeries, s.MaxSegments)
	rule := s.HA.Rule()
	allowance := func(context.Context) auth.Allowance { return s.Allowance }
	shown := &lookup.Chooser{Tables: tables, Rule: func(context.Context) replica.Rule { return rule }}
	if s.Tenants != nil {
		shown.Rule, allowance = s.Tenants.Replicas, s.Tenants.Queries
	}
	reader := samples.New(samples.Settings{
		MaxSamples: s.MaxSamples, Threads: s.Threads, Lookback: s.LookbackDelta, CacheBytes: s.IndexCacheBytes, Starts: s.UseStartTimestamps,
	}, files, cache, s.Recent, tables.Whole, m)
	db := duck.New(duck.Settings{
		MemoryLimitBytes: s.MemoryLimitBytes, TempBytes: s.SpillBytes, Threads: s.Threads, Connections: s.MaxConcurrency,
		TempDir: func() (string, error) { return work.Path(tempdir.Spill) }, Setup: promsql.Register,
	})
	x := &exec.Executor{
		Settings: exec.Settings{
			MaxSamples: s.MaxSamples, Threads: s.Threads, QueryMemoryBytes: s.QueryMemoryBytes, DuckMemoryBytes: s.MemoryLimitBytes,
			FetchBytesPerSecond: s.FetchBytesPerSecond, SamplesPerSecond: s.SamplesPerSecond,
		},
		Snapshots: snapshots, Files: files, Series: shown, Samples: reader, DB: db, Metrics: m, Logger: logger,
	}
	asked := usage.New(usage.Settings{Bytes: s.UsageBytes, Interval: s.UsageInterval}, store, reg, logger, now)
	workers, err := divide.NewWorkers(s.Workers, s.DivideInvocations, reg, logger)
	if err != nil {
		return nil, fmt.Errorf("query settings: %w", err)
	}
	var keeper *divide.Keeper
	if s.KeptAnswersSamples > 0 {
		keeper = divide.NewKeeper(store, files, reg, logger, now)
	}
	e := engine.New(engine.Settings{
		MaxConcurrency: s.MaxConcurrency, MaxSamples: s.MaxSamples, MaxFetchedBytes: s.MaxFetchedBytes, MaxSubquerySteps: s.MaxSubquerySteps,
		QueryMemoryBytes: s.QueryMemoryBytes, MinPushedSamples: s.MinPushedSamples, Timeout: s.Timeout, Lookback: s.LookbackDelta,
		DelayedNameRemoval: s.DelayedNameRemoval, UseStartTimestamps: s.UseStartTimestamps, Cost: s.Cost, Allowance: allowance, DivideBytes: s.DivideBytes, DivideWindows: s.DivideWindows, KeptSamples: s.KeptAnswersSamples, KeptWindow: s.KeptWindow,
	}, x, asked, workers, keeper, reg, logger)
	stage := &Stage{
		Storage:  &engine.Storage{Snapshots: snapshots, Files: files, Tables: tables, Series: shown, Samples: reader, Metrics: m, Logger: logger, Now: now, RecentWindow: s.RecentWindow},
		settings: s, work: work, db: db, exec: x, engine: e, usage: asked, kept: keeper,
	}
	statements := sql.Parts{
		Settings:  sql.Settings{Limits: s.SQL, MemoryBytes: s.QueryMemoryBytes, SpillBytes: s.SpillBytes, Threads: s.Threads},
		Snapshots: snapshots, Store: &views.Store{Files: files, Series: shown, Samples: reader, Buckets: &buckets.Reader{Files: files, Samples: reader, Metrics: m}, Metrics: m},
		Engine: e, Queryable: stage, Remote: !files.Local(), Work: work, Logger: logger,
	}
	statements.Price = func(ctx context.Context, query string, start, end time.Time, step time.Duration) (source.Cost, error) {
		e, err := stage.Explain(ctx, request.Question{Text: query, Start: start, End: end, Step: step, WithoutStatements: true})
		if err != nil {
			return source.Cost{}, err
		}
		return e.Cost, nil
	}
	statements.Metadata = func(ctx context.Context) (map[string][]metadata.Metadata, error) {
		return stage.Storage.Metadata(ctx, "")
	}
	stage.sql = sql.New(statements)
	return stage, nil
}

// KeepRecent keeps the samples that this process stores of a tenant for some minutes, by series,
// where it has memory for that.
func (s *Stage) KeepRecent(tenant string) { s.settings.Recent.Head(tenant).Begin() }

// Engine returns the PromQL engine. It reads samples in DuckDB where it can if a query's
// storage.Queryable is a Stage, or embeds one, or has a method Unwrap() that returns one. Others it
// reads as upstream's engine does.
func (s *Stage) Engine() promql.QueryEngine { return s.engine }

// Executor lets the engine push parts of a query down to the stage.
func (s *Stage) Executor() *exec.Executor { return s.exec }

// Piece evaluates a piece of a range query that another process divides. The tenant is that of the
// context.
func (s *Stage) Piece(ctx context.Context, p *divide.Piece) (*divide.Answer, error) {
	return s.engine.Piece(ctx, s, p)
}

// Explain plans a query and describes the plan. It reads no samples unless the question asks to run
// the statements. The tenant is that of the context. The limits are those of the query itself.
func (s *Stage) Explain(ctx context.Context, q request.Question) (*explain.Explanation, error) {
	return explain.Explain(ctx, s.engine, s, q)
}

// Estimate returns what a query takes. It reads no samples. The tenant is that of the context. The
// limits are those of the query itself, except for those of its cost.
func (s *Stage) Estimate(ctx context.Context, q request.Question) (request.Estimate, error) {
	q.WithoutStatements = true
	e, err := s.Explain(ctx, q)
	if err != nil {
		return request.Estimate{}, err
	}
	return e.Estimate, nil
}

// Slices cuts a range query, or the samples of a selector if its step is 0, or a SQL statement,
// into at most n statements that other processes run. The tenant is that of the context.
func (s *Stage) Slices(ctx context.Context, q request.Question, n int) (*explain.Sliced, error) {
	if q.Statement != nil {
		return s.sql.Slices(ctx, *q.Statement, n)
	}
	return explain.Slices(ctx, s.engine, s, q, n, false)
}

// SQL runs a SQL statement on the data of the context's tenant, and writes its result.
func (s *Stage) SQL(ctx context.Context, q Statement, out request.Output) error {
	if q.Snapshot == nil {
		return s.sql.Run(ctx, q, out)
	}
	ctx, err := s.engine.Pinned(ctx, q.Snapshot)
	if err != nil {
		return err
	}
	if err = s.sql.Run(ctx, q, out); errors.Is(err, objstore.ErrNotFound) {
		err = &sql.FailedError{Message: fmt.Sprintf("an object of the snapshot is gone: the snapshot is older than the compactor's deletion delay; take a new one: %v", err)}
	}
	return err
}

// Run calls fn under the limits of a query: it takes its turn among the queries, and its context
// ends at their timeout. PromQL, SQL and Weigh take their turns themselves.
func (s *Stage) Run(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.engine.Run(ctx, fn)
}

// Weigh calls visit with each series that matches one of sets, with the samples and bytes that are
// stored of it in [mint, maxt] (ms, inclusive), and with the time (ms) of the last of them. It
// takes its turn among the queries and has their limits.
func (s *Stage) Weigh(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64, visit func(lset labels.Labels, samples int64, bytes float64, last int64)) error {
	return s.engine.Run(ctx, func(ctx context.Context) error {
		series, err := s.Storage.Weigh(ctx, sets, mint, maxt)
		for i := range series {
			visit(series[i].Labels, series[i].Samples, series[i].Bytes, series[i].Last)
		}
		return err
	})
}

// Usage returns how often queries asked for the metrics and labels of the context's tenant, rules
// included. SQL counts where it asks in PromQL. Errors: of the store, and of a damaged object.
func (s *Stage) Usage(ctx context.Context) (usage.Report, error) {
	return s.usage.Of(ctx, tenant.From(ctx))
}

// UsageOfAll returns what was counted of each tenant of the store.
func (s *Stage) UsageOfAll(ctx context.Context) (map[string]usage.Report, error) {
	return s.usage.OfAll(ctx)
}

// Queries returns the queries that run in this process.
func (s *Stage) Queries() *request.Queries { return &s.engine.Queries }

// Track calls fn for ctx's request as engine.Engine's does.
func (s *Stage) Track(ctx context.Context, fn func(ctx context.Context)) error {
	return s.engine.Track(ctx, fn)
}

// AskedForValues counts that the context's tenant asked for the values of a label.
func (s *Stage) AskedForValues(ctx context.Context, label string) {
	s.usage.LabelValues(tenant.From(ctx), label)
}

// Asked is the counter behind Usage, for those who let it save.
func (s *Stage) Asked() *usage.Counter { return s.usage }

// WaitKept waits until the answers that are being kept are written, or ctx ends.
func (s *Stage) WaitKept(ctx context.Context) {
	if s.kept != nil {
		s.kept.Wait(ctx)
	}
}

// Settings returns the settings with their defaults.
func (s *Stage) Settings() Settings { return s.settings }

// Warm opens DuckDB, so that the first query that needs it does not wait.
func (s *Stage) Warm() error { return s.db.Open() }

// Close waits for running statements and frees everything that the stage holds.
func (s *Stage) Close() error {
	if s.kept != nil {
		s.kept.Close()
	}
	return errors.Join(s.engine.Close(), s.sql.Close(), s.db.Close(), s.work.Close())
}

// WithSince returns ctx whose reads see everything that was stored before t.
func WithSince(ctx context.Context, t time.Time) context.Context { return request.WithSince(ctx, t) }

// ParserOptions are those of every parser that reads users' PromQL.
func ParserOptions() parser.Options { return engine.ParserOptions() }

// describedBlocks is how many blocks Lake reads to describe columns, and how many segments of a
// window to find the first or the last sample: a GET each that is not cached.
const describedBlocks = 64

// Lake describes the objects of the context's tenant at the context's time. With columns, it also
// describes the columns of the blocks that hold most samples, at most 64, and has the times of the
// first and the last sample. A directory has no price.
func (s *Stage) Lake(ctx context.Context, columns bool) (out inventory.Inventory, err error) {
	_, err = s.exec.Snapshots.Range(key.MinTime, key.MaxTime).Read(ctx, func(snap catalog.Snapshot) error {
		out = inventory.Of(snap)
		if s.exec.Files.Local() {
			out.DollarsPerMonth = 0
		}
		if !columns {
			return nil
		}
		first, last, err := s.exec.Files.Span(ctx, snap, describedBlocks)
		if err != nil {
			return err
		}
		if first <= last {
			out.First, out.Last = first, last
		}
		metas, err := s.exec.Files.Metas(ctx, snap, describedBlocks)
		if err == nil {
			out.Columns = inventory.ColumnsOf(metas)
		}
		return err
	})
	return out, err
}
