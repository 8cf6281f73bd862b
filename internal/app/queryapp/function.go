package queryapp

import (
	"math"
	"runtime"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/query"
)

// What an AWS Lambda function has, whatever its memory is.
const (
	// programBytes is what query-fn takes beside what is shared out. Measured after a first query that opened DuckDB: 30 MB of memory of its own, and 85 MB
	// of the program's file.
	programBytes = 112 << 20
	// vcpuBytes is the memory at which a function has one processor; it has processors in proportion.
	// https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
	vcpuBytes = 1769 << 20
	// functionCacheBytes are for fetched objects: most of the 512 MiB of /tmp that every function
	// has.
	functionCacheBytes = 384 << 20
	// functionSpillBytes are for what DuckDB spills.
	functionSpillBytes = 96 << 20
	// functionCacheDir is one directory, and not a fresh one, for what a killed process left in an environment is to be removed by the next one there.
	functionCacheDir = "/tmp/promlake"
	// functionBytesPerSecond is what a function's network carries, and more than it keeps up for long.
	functionBytesPerSecond = 150 << 20
	// bytesPerSample is what a sample takes that a query holds: as it is read, as the engine's point, and as text of the answer.
	bytesPerSample = 64
)

// ForFunction returns s with what must fit into a function of memoryBytes bytes of memory in place of
// the defaults: DuckDB's memory, the memory and the samples of a query, the caches, how many queries
// run at once, and how fast they run. The sum of all that queries may hold at once, and of the program,
// is within memoryBytes. What the operator gave is kept, and the sum is then the operator's. memoryBytes
// 0 is no function: s is returned as it is.
func ForFunction(s Settings, memoryBytes int64, given flags.Values) Settings {
	if memoryBytes <= 0 {
		return s
	}
	q := &s.Query
	// A function's environment has one request at a time. Where it has more, queries take turns, unless the operator says how many may share.
	flags.Replace(given, "query.max-concurrency", &q.MaxConcurrency, 1)
	flags.Replace(given, "storage.remote.read-concurrent-limit", &s.API.RemoteReadConcurrency, q.MaxConcurrency)

	rest, n := max(memoryBytes-programBytes, memoryBytes/4), int64(q.MaxConcurrency)
	flags.Replace(given, "query.memory-limit", &q.MemoryLimitBytes, rest/4)
	flags.Replace(given, "query.max-memory", &q.QueryMemoryBytes, rest/4/n)
	flags.Lower(given, "query.max-samples", &q.MaxSamples, int(rest/4/n/bytesPerSample))
	flags.Replace(given, "storage.remote.read-sample-limit", &s.API.RemoteReadSampleLimit, q.MaxSamples)
	flags.Lower(given, "query.max-subquery-steps", &q.MaxSubquerySteps, memoryBytes/10*9/4/subqueryStepBytes)
	flags.Replace(given, "query.index-cache-bytes", &q.IndexCacheBytes, rest/16)
	flags.Replace(given, "query.footer-cache-bytes", &q.FooterCacheBytes, rest/32)
	flags.Replace(given, "query.cache-dir", &q.CacheDir, functionCacheDir)
	flags.Replace(given, "query.cache-bytes", &q.CacheBytes, functionCacheBytes)
	flags.Replace(given, "query.spill-bytes", &q.SpillBytes, functionSpillBytes)

	processors := float64(memoryBytes) / vcpuBytes
	if q.Threads == 0 {
		q.Threads = runtime.GOMAXPROCS(0)
	}
	flags.Lower(given, "query.threads", &q.Threads, int(math.Ceil(processors)))
	flags.Replace(given, "query.fetch-bytes-per-second", &q.FetchBytesPerSecond, functionBytesPerSecond)
	flags.Lower(given, "query.samples-per-second", &q.SamplesPerSecond, int64(float64(q.SamplesPerSecond)*processors/float64(q.Threads)))
	s.fitted = true
	return s
}

// HeapBytes is the limit of the Go heap (GOMEMLIMIT) of a function of memoryBytes bytes of memory: what the program, DuckDB and the SQL functions, whose
// memory is not Go's, leave of it. Half of the functions' is Go's. 0, which is no limit, if memoryBytes is 0, or if nothing is left.
func HeapBytes(s query.Settings, memoryBytes int64) int64 {
	if memoryBytes <= 0 {
		return 0
	}
	return max(0, memoryBytes-programBytes-s.MemoryLimitBytes-s.QueryMemoryBytes*int64(s.MaxConcurrency)/2)
}
