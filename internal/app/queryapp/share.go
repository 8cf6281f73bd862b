package queryapp

// within returns s with the shares of the process's memory, limit bytes, where s has defaults that
// are larger: DuckDB has a quarter at most, which it spills beyond, one query's values an eighth
// and its samples a half, the caches a tenth. What was set to another value than the default is
// kept. limit 0 is none.
func within(s Settings, limit int64) Settings {
	if limit <= 0 {
		return s
	}
	q, d := &s.Query, DefaultSettings()
	unset(&q.MemoryLimitBytes, d.Query.MemoryLimitBytes, min(d.Query.MemoryLimitBytes, limit/4))
	unset(&q.QueryMemoryBytes, d.Query.QueryMemoryBytes, min(d.Query.QueryMemoryBytes, limit/8))
	unset(&q.MaxSamples, d.Query.MaxSamples, min(d.Query.MaxSamples, int(limit/2/pointBytes)))
	unset(&s.API.RemoteReadSampleLimit, d.API.RemoteReadSampleLimit, min(d.API.RemoteReadSampleLimit, q.MaxSamples))
	unset(&q.MaxSubquerySteps, d.Query.MaxSubquerySteps, min(d.Query.MaxSubquerySteps, limit/4/subqueryStepBytes))
	unset(&q.IndexCacheBytes, d.Query.IndexCacheBytes, min(d.Query.IndexCacheBytes, limit/16))
	unset(&q.FooterCacheBytes, d.Query.FooterCacheBytes, min(d.Query.FooterCacheBytes, limit/32))
	return s
}

const (
	pointBytes        = 32 // of a sample that the engine holds: as an operation's argument and as its result
	subqueryStepBytes = 48 // of a step of a subquery
)
