// Package queryapp connects the query stage, its HTTP API and the API for deletion to a process:
// their settings and their routes.
package queryapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/admin"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
)

// stage implements process.Stage.
type stage struct {
	query *query.Stage
	api   http.Handler
	admin http.Handler

	patterns []string       // of api
	usage    *usage.Counter // saves what queries ask for; nil: nothing does
	saving   *process.Work  // at intervals; nil: after requests, since Lambda stops a function between them
}

// New returns the builder of the query stage. It passes the stage to those who read from it in this
// process.
func New(s Settings, users ...func(*query.Stage)) process.Builder {
	return func(ctx context.Context, p process.Parts) (process.Stage, error) {
		s := within(s, p.Memory.Limit(), p.Flags).joined(p.Flags)
		if !s.KeepUsage {
			s.Query.UsageInterval, s.Query.KeptAnswersSamples = 0, 0
		}
		promsql.LimitProcess(p.Memory.Limit())
		p.Memory.Outside(duck.Room)
		if s.Query.Tenants == nil && s.Tenants.File != "" {
			defaults := settings.Default[admission.Limits]()
			defaults.HA, defaults.Queries = s.Query.HA, s.Query.Allowance
			tenants, err := admission.New(ctx, s.Tenants, p.Store, defaults, p.Registry, p.Logger, p.Now)
			if err != nil {
				return nil, fmt.Errorf("start query: %w", err)
			}
			s.Query.Tenants = tenants
		}
		if s.Recent != nil {
			s.Query.Recent = s.Recent(p)
		}
		if p.Writes != nil {
			s.Query.Written = p.Writes
		}
		q, err := query.New(s.Query, p.Store, p.Registry, p.Logger, p.Now)
		if err != nil {
			return nil, fmt.Errorf("start query: %w", err)
		}
		h, err := api.New(s.API, backend{q.Engine(), q}, p.Memory, p.Now, p.Logger, p.Registry)
		if err != nil {
			return nil, fmt.Errorf("start query API: %w", errors.Join(err, q.Close()))
		}
		for _, use := range users {
			use(q)
		}
		if s.Warm {
			go warm(ctx, q, p)
		}
		_, local := p.Store.(objstore.Local)
		s.Admin.Queued = !local // a queue is only ever before a bucket
		out := stage{query: q, api: h, admin: admin.New(s.Admin, p.Store, q, p.Logger, p.Registry), patterns: api.Patterns(s.API)}
		if s.Query.UsageInterval > 0 {
			out.usage = q.Asked()
			if !s.function {
				out.saving = process.Begin("the saving of what queries ask for", out.usage.Run)
			}
		}
		return out, nil
	}
}

// warm prepares the stage once the process is ready. An error here returns with the first query
// that needs the same part, which reports it.
func warm(ctx context.Context, q *query.Stage, p process.Parts) {
	select {
	case <-p.Ready:
	case <-ctx.Done():
		return
	}
	if err := q.Warm(); err != nil {
		p.Logger.Debug("open DuckDB ahead", "err", err)
	}
}

// Routes implements process.Stage. The APIs measure their own handlers.
func (s stage) Routes() []process.Route {
	var routes []process.Route
	for _, p := range s.patterns {
		routes = append(routes, process.Route{Pattern: p, Handler: api.WithoutOperator(s.api)})
	}
	for _, p := range api.OperatorPatterns() {
		routes = append(routes, process.Route{Pattern: p, Access: auth.Operate, Handler: s.api})
	}
	for _, p := range api.AdminPatterns() {
		routes = append(routes, process.Route{Pattern: p, Access: auth.Admin, Handler: s.api})
	}
	for _, p := range admin.Patterns() {
		routes = append(routes, process.Route{Pattern: p, Access: auth.Admin, Handler: s.admin})
	}
	return routes
}

// After implements process.Trailing.
func (s stage) After(ctx context.Context) {
	if s.usage != nil {
		s.usage.MaybeSave(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, lastSave)
	defer cancel()
	s.query.WaitKept(ctx)
}

// lastSave is the longest time that the save at the end takes: other stages end after this one. In
// a function, it is that for the answers that are to be kept.
const lastSave = 2 * time.Second

// Drain implements process.Stage: queries in flight have until the end of the shutdown's time. What
// they ask for after it is not saved. The last save takes at most half of the time that ctx leaves.
func (s stage) Drain(ctx context.Context) error {
	if s.usage == nil {
		return nil
	}
	if s.saving != nil {
		if err := s.saving.End(ctx); err != nil {
			return err
		}
	}
	pause := lastSave
	if end, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	s.usage.Save(ctx)
	return nil
}

// Close implements process.Stage.
func (s stage) Close() error {
	if err := s.query.Close(); err != nil {
		return fmt.Errorf("close query: %w", err)
	}
	return nil
}

// Settings are those of the query stage and of its APIs.
type Settings struct {
	Query query.Settings `embed:""`
	API   api.Settings   `embed:""`
	Admin admin.Settings `embed:""`
	// Tenants is the runtime configuration, unless Query.Tenants is set.
	Tenants admission.Settings `kong:"-"`
	Warm    bool               `kong:"-"` // open DuckDB before it is needed: for a process that stays, and not for a function

	// KeepUsage saves what queries ask for, and keeps answers. Programs that only read the store do
	// not set it.
	KeepUsage bool `kong:"-"`
	// Recent returns the segments that the process has stored and keeps in memory. nil: none.
	Recent func(process.Parts) *recent.Segments `kong:"-"`

	function bool // ForFunction has divided the memory
}

// joined returns s with what the stage and its APIs share, and with the process's flags for the API
// to show.
func (s Settings) joined(fs flags.Values) Settings {
	s.API.LookbackDelta, s.API.QueryTimeout, s.API.Cost = s.Query.LookbackDelta, s.Query.Timeout, s.Query.Cost
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

// The API answers a query that goes beyond a limit by this interface.
var (
	_ respond.LimitError = (*query.LimitError)(nil)
	_ api.Explainer      = backend{}
	_ api.SQLer          = backend{}
	_ weights.Weigher    = backend{}
	_ api.Laker          = backend{}
	_ weights.Asker      = backend{}
	_ api.Piecer         = backend{}
)

// backend is an api.Backend: the engine evaluates queries, the stage reads their data.
type backend struct {
	promql.QueryEngine
	*query.Stage
}

// Explain describes how a query is evaluated.
func (b backend) Explain(ctx context.Context, q query.Question) (any, error) {
	return b.Stage.Explain(ctx, q)
}

// Slices cuts a question into statements.
func (b backend) Slices(ctx context.Context, q query.Question, n int) (any, error) {
	return b.Stage.Slices(ctx, q, n)
}

// Lake describes the objects of a tenant.
func (b backend) Lake(ctx context.Context, columns bool) (any, error) {
	return b.Stage.Lake(ctx, columns)
}
