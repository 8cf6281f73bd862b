package queryapp

import (
	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/admin"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/store/recent"
)

// Settings are those of the query stage and of its APIs.
type Settings struct {
	Query query.Settings `embed:""`
	API   api.Settings   `embed:""`
	Admin admin.Settings `embed:""`
	// Tenants is the runtime configuration, unless Query.Tenants is set.
	Tenants admission.Settings `kong:"-"`
	Warm    bool               `kong:"-"` // open DuckDB before it is needed: for a process that stays, and not for a function

	// KeepUsage saves what queries ask for. Programs that only read the store do not set it.
	KeepUsage bool `kong:"-"`
	// Recent returns the segments that the process has stored and keeps in memory. nil: none.
	Recent func(process.Parts) *recent.Segments `kong:"-"`

	function bool // ForFunction has divided the memory
}

// joined returns s with what the stage and its APIs share, and with the process's flags for the API
// to show.
func (s Settings) joined(fs flags.Values) Settings {
	s.API.LookbackDelta = s.Query.LookbackDelta
	s.API.Parser = query.ParserOptions()
	s.API.Build = telemetry.ReadBuild()
	s.API.Flags, s.API.ConfigYAML = fs.Map(), fs.YAML()
	s.Admin.Parser, s.Admin.Expressions = s.API.Parser, s.API.Expressions
	s.Admin.MaxBodyBytes, s.Admin.Timeout = s.API.MaxBodyBytes, s.Query.Timeout
	return s
}

// within returns s with shares of the process's memory, limit bytes, in place of larger defaults:
// DuckDB has a quarter at most, which it spills beyond, one query's values an eighth and its
// samples a half, the caches a tenth. What the operator gave is kept. limit 0 is none.
func within(s Settings, limit int64, given flags.Values) Settings {
	if limit <= 0 || s.function {
		return s
	}
	q := &s.Query
	flags.Lower(given, "query.memory-limit", &q.MemoryLimitBytes, limit/4)
	flags.Lower(given, "query.max-memory", &q.QueryMemoryBytes, limit/8)
	flags.Lower(given, "query.max-samples", &q.MaxSamples, int(limit/2/pointBytes))
	flags.Lower(given, "storage.remote.read-sample-limit", &s.API.RemoteReadSampleLimit, q.MaxSamples)
	flags.Lower(given, "query.max-subquery-steps", &q.MaxSubquerySteps, limit/4/subqueryStepBytes)
	flags.Lower(given, "query.index-cache-bytes", &q.IndexCacheBytes, limit/16)
	flags.Lower(given, "query.footer-cache-bytes", &q.FooterCacheBytes, limit/32)
	return s
}

const (
	pointBytes        = 32 // of a sample that the engine holds: as an operation's argument and as its result
	subqueryStepBytes = 48 // of a step of a subquery
)
