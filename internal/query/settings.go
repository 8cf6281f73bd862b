package query

import (
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/promlake/promlake/internal/query/duck"
)

// Settings of the query stage. The zero value of a field means its default.
type Settings struct {
	// CacheDir is a directory for fetched objects and for DuckDB's spilled data. It belongs to one process at a time and
	// its former contents are removed. Default: a fresh temporary directory, removed on Close.
	CacheDir string
	// CacheBytes bounds the fetched objects on disk, those that are on their way included. What running queries need at once beyond it is in memory for so
	// long, up to IndexCacheBytes, or 32 MiB if that is more. Default 10 GiB.
	CacheBytes int64
	// FooterCacheBytes bounds the memory for segments' footers and blocks' meta.json, roughly. Default 64 MiB.
	FooterCacheBytes int64
	// IndexCacheBytes bounds the memory for series tables and for recent samples, roughly. Default 128 MiB.
	IndexCacheBytes int64
	// FetchConcurrency is the number of store requests that one query has in flight. Default 64.
	FetchConcurrency int
	// MaxStaleness is how old the listing of a tenant's objects may be that a read uses: reads that begin within that time share it, and miss
	// what was stored in between. Default 0: every read makes its own.
	MaxStaleness time.Duration

	// MemoryLimitBytes is DuckDB's memory limit. Default 1 GiB.
	MemoryLimitBytes int64
	// SpillBytes bounds what DuckDB writes to disk beyond its memory. Default 10 GiB.
	SpillBytes int64
	// Threads of DuckDB. Default: GOMAXPROCS.
	Threads int

	// MaxConcurrency is the number of PromQL queries, and of SQL statements, that run at once; further ones wait. Default 20.
	MaxConcurrency int
	// MaxSamples is the number of samples that one select, and one PromQL query at any moment, may hold in memory. Default 50,000,000.
	MaxSamples int
	// MaxSeries is the number of series that one select may return. Default 2,000,000.
	MaxSeries int
	// MaxSubquerySteps is the number of steps at which the expressions of all subqueries of one
	// PromQL query are evaluated. At each, upstream's engine keeps 48 bytes or more. The windows
	// over them, where they are left to that engine, may hold ten times as many. Default 5,000,000:
	// 240 MB.
	MaxSubquerySteps int64
	// MaxSegments is the number of segments and blocks that one select may read. Default 100,000.
	MaxSegments int

	// MaxFetchedBytes is the number of bytes of objects that one PromQL query may read, whether they are cached or not. Default 100 GiB.
	MaxFetchedBytes int64
	// QueryMemoryBytes bounds the memory that the SQL functions of one PromQL query hold outside of
	// DuckDB, and likewise the labels that its functions may add to series. Default 256 MiB.
	QueryMemoryBytes int64
	// MinPushedSamples leaves a part of a PromQL query to the engine, rather than to SQL, whose selectors have fewer samples than
	// this. -1 leaves it nothing that SQL can do. Default 50,000.
	MinPushedSamples int64

	// FetchBytesPerSecond is how fast objects come from the store at best, and SamplesPerSecond how fast one thread evaluates samples at best. A query
	// that would take longer than its time even so is refused before it begins. Defaults 1 GiB and 100,000,000.
	FetchBytesPerSecond, SamplesPerSecond int64

	// Timeout of a PromQL query. Default 2 minutes.
	Timeout time.Duration
	// LookbackDelta is how far back an instant selector looks for a sample. Default 5 minutes.
	LookbackDelta time.Duration
	// PartialResponse lets reads answer without objects that are damaged, with a warning that names
	// them. Default off: they fail.
	PartialResponse bool
	// RecentWindow is the time before now that Metadata and Stats look at. Default 1 hour.
	RecentWindow time.Duration

	// DelayedNameRemoval and UseStartTimestamps are the upstream engine's feature flags promql-delayed-name-removal and
	// use-start-timestamps. Default off, as upstream.
	DelayedNameRemoval, UseStartTimestamps bool
}

// WithDefaults fills unset fields and validates the rest.
func (s Settings) WithDefaults() (Settings, error) {
	setDefault(&s.CacheBytes, 10<<30)
	setDefault(&s.FooterCacheBytes, 64<<20)
	setDefault(&s.IndexCacheBytes, 128<<20)
	setDefault(&s.FetchConcurrency, 64)
	setDefault(&s.MemoryLimitBytes, 1<<30)
	setDefault(&s.SpillBytes, 10<<30)
	setDefault(&s.Threads, runtime.GOMAXPROCS(0))
	setDefault(&s.MaxConcurrency, 20)
	setDefault(&s.MaxSamples, 50_000_000)
	setDefault(&s.MaxSeries, 2_000_000)
	setDefault(&s.MaxSubquerySteps, 5_000_000)
	setDefault(&s.MaxSegments, 100_000)
	setDefault(&s.MaxFetchedBytes, 100<<30)
	setDefault(&s.QueryMemoryBytes, 256<<20)
	setDefault(&s.MinPushedSamples, 50_000)
	setDefault(&s.FetchBytesPerSecond, 1<<30)
	setDefault(&s.SamplesPerSecond, 100_000_000)
	setDefault(&s.Timeout, 2*time.Minute)
	setDefault(&s.LookbackDelta, 5*time.Minute)
	setDefault(&s.RecentWindow, time.Hour)
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"cache bytes", s.CacheBytes}, {"footer cache bytes", s.FooterCacheBytes}, {"index cache bytes", s.IndexCacheBytes},
		{"fetch concurrency", int64(s.FetchConcurrency)},
		{"memory limit bytes", s.MemoryLimitBytes}, {"spill bytes", s.SpillBytes}, {"threads", int64(s.Threads)}, {"max concurrency", int64(s.MaxConcurrency)},
		{"max samples", int64(s.MaxSamples)}, {"max series", int64(s.MaxSeries)}, {"max subquery steps", s.MaxSubquerySteps}, {"max segments", int64(s.MaxSegments)},
		{"max fetched bytes", s.MaxFetchedBytes},
		{"query memory bytes", s.QueryMemoryBytes}, {"fetch bytes per second", s.FetchBytesPerSecond},
		{"samples per second", s.SamplesPerSecond}, {"timeout", int64(s.Timeout)}, {"lookback delta", int64(s.LookbackDelta)},
		{"recent window", int64(s.RecentWindow)},
	} {
		if f.value <= 0 {
			return s, fmt.Errorf("query settings: %s must be positive, is %d", f.name, f.value)
		}
	}
	if s.MaxStaleness < 0 {
		return s, fmt.Errorf("query settings: max staleness must not be negative, is %s", s.MaxStaleness)
	}
	if s.MinPushedSamples < -1 {
		return s, fmt.Errorf("query settings: min pushed samples must be positive, or -1 for none, is %d", s.MinPushedSamples)
	}
	if s.CacheDir != "" {
		abs, err := filepath.Abs(s.CacheDir)
		if err != nil {
			return s, fmt.Errorf("query settings: make cache directory absolute: %w", err)
		}
		if duck.HasGlob(abs) {
			return s, fmt.Errorf("query settings: cache directory %q holds a character that SQL takes for a pattern", abs)
		}
		s.CacheDir = abs
	}
	return s, nil
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
