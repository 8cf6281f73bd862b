package query

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/sql"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/internal/store/replica"
)

// Settings of the query stage. The tags are those of package settings. The zero value of a field
// means its default. Flags that Prometheus has are named as there.
type Settings struct {
	Timeout          time.Duration `name:"query.timeout" default:"2m" above:"0" help:"Longest duration of a query. Must be less than --compactor.deletion-delay." when:"Raise it for reports over long ranges, lower it to shed expensive queries sooner."`
	LookbackDelta    time.Duration `name:"query.lookback-delta" default:"5m" min:"1ms" help:"How far back an instant selector looks for a sample." when:"Raise it if the scrape interval is longer than two minutes."`
	MaxConcurrency   int           `name:"query.max-concurrency" default:"20" min:"1" help:"Queries that run at once. Further queries wait. One tenant may run all but one, so that others do not wait for its slow queries." when:"Lower it if memory is short. In a function, the default is 1."`
	MaxSamples       int           `name:"query.max-samples" default:"50000000" min:"1" help:"Samples that one query may hold in memory." when:"Raise it if good queries are refused and memory is free. If not set, at most a share of the process's memory."`
	MaxSeries        int           `name:"query.max-series" default:"2000000" min:"1" help:"Series that one selector may return." when:"Lower it to refuse expensive selectors sooner."`
	MaxSubquerySteps int64         `name:"query.max-subquery-steps" default:"5000000" min:"1" help:"Steps at which one query evaluates the expressions of its subqueries. Windows that SQL does not evaluate may hold ten times as many." when:"Raise it if good subqueries are refused; a step costs 48 bytes."`
	MaxSegments      int           `name:"query.max-segments" default:"100000" min:"1" help:"Segments and blocks that one selector may read." when:"Raise it if compaction has lagged for long."`
	MaxFetchedBytes  int64         `name:"query.max-fetched-bytes" type:"bytes" default:"100GiB" min:"1" help:"Bytes of objects that one query may read, whether cached or not." when:"Lower it to bound what one query may cost."`
	QueryMemoryBytes int64         `name:"query.max-memory" type:"bytes" default:"256MiB" min:"1" help:"Memory of one query for samples in SQL, beside DuckDB's memory. The labels that its functions add have as much." when:"Raise it if queries are refused for it. If not set, at most a share of the process's memory."`

	FetchBytesPerSecond int64 `name:"query.fetch-bytes-per-second" type:"bytes" default:"1GiB" min:"1" help:"Most bytes a second that the store delivers. A query that would exceed its time even so is refused at once." when:"Set it to what your network carries. In a function, the default is 150MiB."`
	SamplesPerSecond    int64 `name:"query.samples-per-second" default:"100000000" min:"1" help:"Most samples that one thread evaluates in a second. A query that would exceed its time even so is refused at once." when:"Lower it on slow processors. In a function, the default follows its memory."`
	MinPushedSamples    int64 `name:"query.min-pushed-samples" default:"50000" min:"-1" help:"Samples from which a part of a query is evaluated in SQL, unless its values are few. With fewer, only such parts are evaluated outside of the PromQL engine. -1 is always." when:"Rarely; for measurements."`

	MaxStaleness    time.Duration `name:"query.max-staleness" default:"1s" min:"0" help:"Longest time for which queries share a listing of the store. They miss what other processes stored since. 0 lists for every query." when:"Set 0 to read at once what other processes have acknowledged, raise it to pay for fewer LIST requests."`
	PartialResponse bool          `name:"query.partial-response" default:"false" help:"Answer without damaged objects, with a warning that names each and its time range. Otherwise such queries fail." when:"Set it while you repair a damaged store."`
	RecentWindow    time.Duration `name:"query.recent-window" default:"1h" above:"0" help:"Time before now that metadata and cardinality cover." when:"Raise it if metrics are written less than hourly."`

	DelayedNameRemoval bool `name:"query.delayed-name-removal" default:"false" help:"Drop metric names at the end of a query, as Prometheus' feature promql-delayed-name-removal does." when:"Set it if your Prometheus has it."`
	UseStartTimestamps bool `name:"query.use-start-timestamps" default:"false" help:"Use start timestamps in rates, as Prometheus' feature use-start-timestamps does." when:"Set it if your Prometheus has it."`

	MemoryLimitBytes int64 `name:"query.memory-limit" type:"bytes" default:"1GiB" min:"1" help:"DuckDB's memory." when:"Raise it if queries spill to disk. If not set, at most a share of the process's memory."`
	SpillBytes       int64 `name:"query.spill-bytes" type:"bytes" default:"10GiB" min:"1" help:"Disk space in --query.cache-dir that DuckDB may use beyond its memory." when:"Lower it if the disk is small. In a function, the default is 96MiB."`
	Threads          int   `name:"query.threads" default:"0" min:"0" help:"DuckDB's threads. 0 is one for each processor." when:"Lower it to leave processors to other work."`

	UsageBytes int64 `name:"query.usage-bytes" type:"bytes" default:"16MiB" min:"0" help:"Memory for the names of metrics and labels that queries asked for, about 200 bytes each, until they are saved. A tenant's counts in the store have as much. 0 counts none." when:"Raise it if promlake_query_uncounted_names_total increases."`
	// UsageInterval is that of processes that keep their counts, and 0 in others.
	UsageInterval time.Duration `name:"query.usage-interval" default:"10m" min:"0" help:"Time between two saves of the counts of what queries asked for. A process that is killed loses those of this time. 0 keeps them in memory." when:"Set 0 if the process may not write to the store."`

	Cost      request.CostLimits `embed:""`
	Allowance auth.Allowance     `embed:""`

	Workers           []string `name:"query.workers" placeholder:"HOST:PORT" help:"Query processes over the same store that evaluate slices of large range queries, separated by commas. dns+HOST:PORT stands for all addresses of a name, which is looked up for each divided query. Or lambda:FUNCTION alone: a query function of AWS Lambda, lambda:self in itself. Default: no query is divided." when:"Set it if large range queries take too long on one machine, or in one function."`
	DivideBytes       int64    `name:"query.divide-bytes" type:"bytes" default:"64MiB" min:"1" help:"Bytes of objects from which a range query is divided over --query.workers, and a result of Flight SQL into endpoints, by the estimate." when:"Raise it if workers are busy with queries that one process answers soon enough."`
	DivideWindows     int64    `name:"query.divide-windows" default:"3" min:"-1" help:"Windows of blocks, of a day each for older samples, that a slice of a divided query has at least. At each end of a slice, the rows of one window are read twice. -1 cuts anywhere." when:"Set 1 for shorter waits over few days, at the price of more processor time in total."`
	DivideInvocations int      `name:"query.divide-invocations" default:"8" min:"2" help:"Slices of a tenant's range queries that the function of --query.workers evaluates at once for this process, each in an invocation of its own." when:"Raise it for shorter waits, at the price of more starts of the function and more requests to the store."`

	// KeptAnswersSamples is 0 in processes that only read the store.
	KeptAnswersSamples int64 `name:"query.kept-answers-samples" default:"10000000" min:"0" help:"Stored samples of the series of a range query over several days from which its answer is kept in the store, so that the next one evaluates only new steps. 0 neither keeps answers nor uses kept ones." when:"Raise it if requests to the store cost more than processors. Set 0 if the process may not write to the store."`
	// KeptWindow is the length of the least windows of whose steps answers are kept, for tests. 0: a
	// day.
	KeptWindow time.Duration `kong:"-"`

	SQL sql.Limits       `embed:""`
	HA  replica.Settings `embed:""`
	// Tenants have rules of their own. nil: all have that of HA.
	Tenants Tenants `kong:"-"`
	// Recent has segments that this process has stored, whose samples are read from memory. nil: none.
	Recent *recent.Segments `kong:"-"`
	// Written knows when this process last wrote to a tenant. Later queries see that write. nil:
	// others write.
	Written snapshot.Writes `kong:"-"`

	// CacheDir belongs to one process at a time. A temporary directory is removed on Close.
	CacheDir string `name:"query.cache-dir" placeholder:"DIR" help:"Directory for fetched objects and DuckDB's spilled data, emptied at the start. Default: a temporary directory, /tmp/promlake in a function." when:"Set it to a fast local disk."`
	// CacheBytes includes objects that are on their way. What running queries need at once beyond
	// it is in memory for so long, up to IndexCacheBytes, or 32 MiB if that is more.
	CacheBytes       int64         `name:"query.cache-bytes" type:"bytes" default:"10GiB" min:"1" help:"Disk space for fetched objects." when:"Raise it if queries fetch the same objects again. In a function, the default is 384MiB."`
	FooterCacheBytes int64         `name:"query.footer-cache-bytes" type:"bytes" default:"64MiB" min:"1" help:"Memory for segments' footers and blocks' meta.json, roughly." when:"Raise it if there are very many objects. If not set, at most a share of the process's memory."`
	IndexCacheBytes  int64         `name:"query.index-cache-bytes" type:"bytes" default:"512MiB" min:"1" help:"Memory for series tables, recent samples, samples of blocks that small queries read, and the rows that selectors matched, roughly." when:"Raise it if there are millions of series. If not set, at most a share of the process's memory."`
	IndexCacheIdle   time.Duration `name:"query.index-cache-idle" default:"5m" min:"0" help:"Time after which series tables and samples that no query has read are forgotten, although there is room in --query.index-cache-bytes. 0 keeps them." when:"Raise it if panels are looked at now and then and memory is free."`
	FetchConcurrency int           `name:"query.fetch-concurrency" default:"64" min:"1" help:"Store requests that one query has in flight." when:"Lower it if the store throttles."`
}

// Tenants know the settings of single tenants.
type Tenants interface {
	// Replicas returns which series of the context's tenant are replicas of one another.
	Replicas(ctx context.Context) replica.Rule
	// Queries returns what the queries of the context's tenant may take.
	Queries(ctx context.Context) auth.Allowance
}

// WithDefaults fills unset fields and validates the rest, by the names of the flags.
func (s Settings) WithDefaults() (Settings, error) {
	settings.Fill(&s)
	if s.Threads == 0 {
		s.Threads = runtime.GOMAXPROCS(0)
	}
	if err := errors.Join(settings.Check(s), s.HA.Validate("query.ha-replica-label", "query.ha-cluster-label")); err != nil {
		return s, fmt.Errorf("query settings: %w", err)
	}
	if s.CacheDir != "" {
		abs, err := filepath.Abs(s.CacheDir)
		if err != nil {
			return s, fmt.Errorf("query settings: make cache directory absolute: %w", err)
		}
		if duck.HasGlob(abs) {
			return s, fmt.Errorf("query settings: query.cache-dir: want no character that SQL takes for a pattern, got %q", abs)
		}
		s.CacheDir = abs
	}
	return s, nil
}
