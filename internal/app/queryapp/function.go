package queryapp

import (
	"math"

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

// ForFunction returns s with what must fit into a function of memoryBytes bytes of memory, where s has the default: DuckDB's memory, the memory
// and the samples of a query, the caches, how many queries run at once, and how fast they run. The sum of all that queries may hold at once, and
// of the program, is within memoryBytes. What was set to another value than the default is kept, and the sum is then the operator's. memoryBytes
// 0 is no function: s is returned as it is.
func ForFunction(s Settings, memoryBytes int64) Settings {
	if memoryBytes <= 0 {
		return s
	}
	q, d := &s.Query, DefaultSettings()
	// A function's environment has one request at a time. Where it has more, queries take turns, unless the operator says how many may share.
	unset(&q.MaxConcurrency, d.Query.MaxConcurrency, 1)
	unset(&s.API.RemoteReadConcurrency, d.API.RemoteReadConcurrency, q.MaxConcurrency)

	rest, n := max(memoryBytes-programBytes, memoryBytes/4), int64(q.MaxConcurrency)
	unset(&q.MemoryLimitBytes, d.Query.MemoryLimitBytes, rest/4)
	unset(&q.QueryMemoryBytes, d.Query.QueryMemoryBytes, rest/4/n)
	unset(&q.MaxSamples, d.Query.MaxSamples, min(int(rest/4/n/bytesPerSample), d.Query.MaxSamples))
	unset(&s.API.RemoteReadSampleLimit, d.API.RemoteReadSampleLimit, q.MaxSamples)
	unset(&q.IndexCacheBytes, d.Query.IndexCacheBytes, rest/16)
	unset(&q.FooterCacheBytes, d.Query.FooterCacheBytes, rest/32)
	unset(&q.CacheDir, "", functionCacheDir)
	unset(&q.CacheBytes, d.Query.CacheBytes, functionCacheBytes)
	unset(&q.SpillBytes, d.Query.SpillBytes, functionSpillBytes)

	processors := float64(memoryBytes) / vcpuBytes
	unset(&q.Threads, d.Query.Threads, max(1, min(d.Query.Threads, int(math.Ceil(processors)))))
	unset(&q.FetchBytesPerSecond, d.Query.FetchBytesPerSecond, functionBytesPerSecond)
	unset(&q.SamplesPerSecond, d.Query.SamplesPerSecond, int64(float64(d.Query.SamplesPerSecond)*min(1, processors/float64(q.Threads))))
	return s
}

// unset gives a setting a value if it has its default.
func unset[T comparable](field *T, byDefault, value T) {
	if *field == byDefault {
		*field = value
	}
}

// HeapBytes is the limit of the Go heap (GOMEMLIMIT) of a function of memoryBytes bytes of memory: what the program, DuckDB and the SQL functions, whose
// memory is not Go's, leave of it. Half of the functions' is Go's. 0, which is no limit, if memoryBytes is 0, or if nothing is left.
func HeapBytes(s query.Settings, memoryBytes int64) int64 {
	if memoryBytes <= 0 {
		return 0
	}
	return max(0, memoryBytes-programBytes-s.MemoryLimitBytes-s.QueryMemoryBytes*int64(s.MaxConcurrency)/2)
}
