package queryapp

import (
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/expression"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/admin"
	"github.com/promlake/promlake/internal/query/api"
)

// Flags are the command-line flags of the query stage and its API. Those that Prometheus has are named as there.
type Flags struct {
	Timeout             time.Duration `name:"query.timeout" help:"Longest time that a query may take."`
	LookbackDelta       time.Duration `name:"query.lookback-delta" help:"How far back an instant selector looks for a sample."`
	MaxConcurrency      int           `name:"query.max-concurrency" help:"Queries that run at once; further ones wait."`
	MaxSamples          int           `name:"query.max-samples" help:"Samples that one query may hold in memory."`
	MaxSeries           int           `name:"query.max-series" help:"Series that one selector may return."`
	MaxExpressionBytes  int           `name:"query.max-expression-bytes" type:"bytes" help:"Length of a query, or of all match[] of a request together."`
	MaxExpressionDepth  int           `name:"query.max-expression-depth" help:"How deep brackets and operators of a query may be nested; a chain such as 1+1+1 is as deep as it is long."`
	MaxSubquerySteps    int64         `name:"query.max-subquery-steps" help:"Steps at which one query evaluates the expressions of its subqueries. The windows over them may hold ten times as many, unless SQL evaluates them."`
	MaxSegments         int           `name:"query.max-segments" help:"Segments and blocks that one selector may read."`
	MaxFetchedBytes     int64         `name:"query.max-fetched-bytes" type:"bytes" help:"Bytes of objects that one query may read, cached or not."`
	QueryMemoryBytes    int64         `name:"query.max-memory" type:"bytes" help:"Memory that one query may hold for samples in SQL, outside of DuckDB's memory."`
	FetchBytesPerSecond int64         `name:"query.fetch-bytes-per-second" type:"bytes" help:"Bytes that come from the store in a second, at best. A query that would take longer than its time is refused."`
	SamplesPerSecond    int64         `name:"query.samples-per-second" help:"Samples that one thread evaluates in a second, at best. A query that would take longer than its time is refused."`
	MinPushedSamples    int64         `name:"query.min-pushed-samples" help:"Samples from which on a part of a query is evaluated in SQL; -1 means always."`
	MaxStaleness        time.Duration `name:"query.max-staleness" help:"How old the listing of objects may be that a query reads: queries share it for so long, and miss what was stored since. 0 lists for every query."`
	PartialResponse     bool          `name:"query.partial-response" help:"Answer without objects that are damaged, with a warning that names each and its time range. Without it, such a query fails."`
	RecentWindow        time.Duration `name:"query.recent-window" help:"Time before now that metadata and cardinality look at."`
	DelayedNameRemoval  bool          `name:"query.delayed-name-removal" help:"Drop metric names at the end of a query, as Prometheus' feature promql-delayed-name-removal."`
	UseStartTimestamps  bool          `name:"query.use-start-timestamps" help:"Use start timestamps in rates, as Prometheus' feature use-start-timestamps."`
	MemoryLimitBytes    int64         `name:"query.memory-limit" type:"bytes" help:"DuckDB's memory."`
	SpillBytes          int64         `name:"query.spill-bytes" type:"bytes" help:"Bytes on disk that DuckDB may write beyond its memory, in the cache directory."`
	Threads             int           `name:"query.threads" help:"DuckDB's threads, by default one for each CPU."`
	CacheDir            string        `name:"query.cache-dir" placeholder:"DIR" help:"Directory of fetched objects, emptied at the start. Default: a temporary one."`
	CacheBytes          int64         `name:"query.cache-bytes" type:"bytes" help:"Bytes of fetched objects that are kept on disk."`
	FooterCacheBytes    int64         `name:"query.footer-cache-bytes" type:"bytes" help:"Memory for the footers of segments and the meta.json of blocks."`
	IndexCacheBytes     int64         `name:"query.index-cache-bytes" type:"bytes" help:"Memory for series tables and for recent samples."`
	FetchConcurrency    int           `name:"query.fetch-concurrency" help:"Store requests that one query has in flight."`
	ReadSampleLimit     int           `name:"storage.remote.read-sample-limit" help:"Samples of one remote read that is not streamed. 0 means no limit."`
	ReadConcurrentLimit int           `name:"storage.remote.read-concurrent-limit" help:"Remote reads that run at once. A tenant has half of them at most, or one."`
	ReadFrameBytes      int           `name:"storage.remote.read-max-bytes-in-frame" type:"bytes" help:"Size at which a frame of a streamed remote read is sent."`
	WriteTimeout        time.Duration `name:"web.write-timeout" help:"Longest time that a client may take for 64 KiB of an answer."`
	CORSOrigin          string        `name:"web.cors.origin" help:"Regular expression of the origins whose pages may read answers; it is anchored."`
	MaxBodyBytes        int64         `name:"web.max-body-bytes" type:"bytes" help:"Largest body of an API request."`
	MaxDeleteSelectors  int64         `name:"web.max-delete-selectors" help:"Selectors that one request for deletion may have. Their matchers may have 64 KiB, and those of all deletions of a tenant that are not compacted yet 1 MiB."`
	EnableAdminAPI      bool          `name:"web.enable-admin-api" help:"Let whoever reaches the HTTP API delete series through it."`
}

// NewFlags returns the flags at their defaults.
func NewFlags() Flags {
	s := DefaultSettings()
	return Flags{
		Timeout:             s.Query.Timeout,
		LookbackDelta:       s.Query.LookbackDelta,
		MaxConcurrency:      s.Query.MaxConcurrency,
		MaxSamples:          s.Query.MaxSamples,
		MaxSeries:           s.Query.MaxSeries,
		MaxExpressionBytes:  s.API.Expressions.MaxBytes,
		MaxExpressionDepth:  s.API.Expressions.MaxDepth,
		MaxSubquerySteps:    s.Query.MaxSubquerySteps,
		MaxSegments:         s.Query.MaxSegments,
		MaxFetchedBytes:     s.Query.MaxFetchedBytes,
		QueryMemoryBytes:    s.Query.QueryMemoryBytes,
		FetchBytesPerSecond: s.Query.FetchBytesPerSecond,
		SamplesPerSecond:    s.Query.SamplesPerSecond,
		MinPushedSamples:    s.Query.MinPushedSamples,
		MaxStaleness:        s.Query.MaxStaleness,
		PartialResponse:     s.Query.PartialResponse,
		RecentWindow:        s.Query.RecentWindow,
		DelayedNameRemoval:  s.Query.DelayedNameRemoval,
		UseStartTimestamps:  s.Query.UseStartTimestamps,
		MemoryLimitBytes:    s.Query.MemoryLimitBytes,
		SpillBytes:          s.Query.SpillBytes,
		Threads:             s.Query.Threads,
		CacheDir:            s.Query.CacheDir,
		CacheBytes:          s.Query.CacheBytes,
		FooterCacheBytes:    s.Query.FooterCacheBytes,
		IndexCacheBytes:     s.Query.IndexCacheBytes,
		FetchConcurrency:    s.Query.FetchConcurrency,
		ReadSampleLimit:     s.API.RemoteReadSampleLimit,
		ReadConcurrentLimit: s.API.RemoteReadConcurrency,
		ReadFrameBytes:      s.API.RemoteReadFrameBytes,
		WriteTimeout:        s.API.WriteTimeout,
		CORSOrigin:          s.API.CORSOrigin,
		MaxBodyBytes:        s.API.MaxBodyBytes,
		MaxDeleteSelectors:  s.Admin.MaxSelectors,
	}
}

// Settings returns what the flags say. The API shows all of the process's flags, vs.
func (f Flags) Settings(vs flags.Values) Settings {
	return Settings{Query: f.query(), API: f.api(vs), Admin: f.admin()}
}

func (f Flags) query() query.Settings {
	return query.Settings{
		CacheDir:            f.CacheDir,
		CacheBytes:          f.CacheBytes,
		FooterCacheBytes:    f.FooterCacheBytes,
		IndexCacheBytes:     f.IndexCacheBytes,
		FetchConcurrency:    f.FetchConcurrency,
		MemoryLimitBytes:    f.MemoryLimitBytes,
		SpillBytes:          f.SpillBytes,
		Threads:             f.Threads,
		MaxConcurrency:      f.MaxConcurrency,
		MaxSamples:          f.MaxSamples,
		MaxSeries:           f.MaxSeries,
		MaxSubquerySteps:    f.MaxSubquerySteps,
		MaxSegments:         f.MaxSegments,
		MaxFetchedBytes:     f.MaxFetchedBytes,
		QueryMemoryBytes:    f.QueryMemoryBytes,
		FetchBytesPerSecond: f.FetchBytesPerSecond,
		SamplesPerSecond:    f.SamplesPerSecond,
		MinPushedSamples:    f.MinPushedSamples,
		Timeout:             f.Timeout,
		LookbackDelta:       f.LookbackDelta,
		MaxStaleness:        f.MaxStaleness,
		PartialResponse:     f.PartialResponse,
		RecentWindow:        f.RecentWindow,
		DelayedNameRemoval:  f.DelayedNameRemoval,
		UseStartTimestamps:  f.UseStartTimestamps,
	}
}

func (f Flags) admin() admin.Settings {
	s := DefaultSettings().Admin
	s.Enabled, s.MaxBodyBytes, s.Timeout, s.Expressions = f.EnableAdminAPI, f.MaxBodyBytes, f.Timeout, f.expressions()
	s.MaxSelectors = f.MaxDeleteSelectors
	return s
}

func (f Flags) expressions() expression.Limits {
	return expression.Limits{MaxBytes: f.MaxExpressionBytes, MaxDepth: f.MaxExpressionDepth}
}

func (f Flags) api(vs flags.Values) api.Settings {
	s := DefaultSettings().API
	s.LookbackDelta = f.LookbackDelta
	s.MaxBodyBytes = f.MaxBodyBytes
	s.Expressions = f.expressions()
	s.RemoteReadSampleLimit = f.ReadSampleLimit
	if f.ReadSampleLimit == 0 {
		s.RemoteReadSampleLimit = -1 // the API's own way to say that there is none
	}
	s.RemoteReadConcurrency = f.ReadConcurrentLimit
	s.RemoteReadFrameBytes = f.ReadFrameBytes
	s.WriteTimeout = f.WriteTimeout
	s.CORSOrigin = f.CORSOrigin
	s.Flags = vs.Map()
	s.ConfigYAML = vs.YAML()
	return s
}
