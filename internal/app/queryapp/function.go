package queryapp

import (
	"cmp"
	"math"
	"runtime"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/query"
)

// What an AWS Lambda function has, whatever its memory is.
const (
	// programBytes is the memory of query-fn outside the shared budgets. Measured after a first
	// query that opened DuckDB: 30 MB of its own memory, and 85 MB of the program's file.
	programBytes = 112 << 20
	// vcpuBytes is the memory at which a function has one processor; it has processors in
	// proportion. https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
	vcpuBytes = 1769 << 20
	// functionCacheBytes are for fetched objects: most of the 512 MiB of /tmp that every function
	// has.
	functionCacheBytes = 384 << 20
	// functionSpillBytes are for what DuckDB spills.
	functionSpillBytes = 96 << 20
	// functionCacheDir is a fixed directory: the next process in an environment removes the files
	// that a killed process left there.
	functionCacheDir = "/tmp/promlake"
	// functionBytesPerSecond is what a function's network carries, and more than it keeps up for
	// long.
	functionBytesPerSecond = 150 << 20
	// bytesPerSample is the memory of a sample in a query: as it is read, as the engine's point,
	// and as text of the answer.
	bytesPerSample = 64
)

// ForFunction returns s with those defaults replaced that have to fit into a function with
// memoryBytes bytes of memory: DuckDB's memory, the memory and the samples of a query, the caches,
// and the number of concurrent queries and their rates. The sum of what all queries and the program
// may hold is at most memoryBytes. Settings that the operator set stay, and then the operator
// answers for the sum. If memoryBytes is 0, the process is not a function and s is returned
// unchanged.
func ForFunction(s Settings, memoryBytes int64, given flags.Values) Settings {
	if memoryBytes <= 0 {
		return s
	}
	q := &s.Query
	// A function's environment runs one request at a time. Where it runs more, queries take turns,
	// unless the operator sets how many run at once.
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
	q.Threads = cmp.Or(q.Threads, runtime.GOMAXPROCS(0))
	flags.Lower(given, "query.threads", &q.Threads, int(math.Ceil(processors)))
	flags.Replace(given, "query.fetch-bytes-per-second", &q.FetchBytesPerSecond, functionBytesPerSecond)
	flags.Lower(given, "query.samples-per-second", &q.SamplesPerSecond, int64(float64(q.SamplesPerSecond)*processors/float64(q.Threads)))
	s.function = true
	return s
}

// HeapBytes returns the limit of the Go heap (GOMEMLIMIT), in bytes, of a function with memoryBytes
// bytes of memory: the memory without the shares of the program, DuckDB and the SQL functions,
// which Go does not count. Half of the SQL functions' budget is Go memory. It returns 0, which is
// no limit, if memoryBytes is 0 or if nothing is left.
func HeapBytes(s query.Settings, memoryBytes int64) int64 {
	if memoryBytes <= 0 {
		return 0
	}
	return max(0, memoryBytes-programBytes-s.MemoryLimitBytes-s.QueryMemoryBytes*int64(s.MaxConcurrency)/2)
}
