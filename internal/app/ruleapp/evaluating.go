// Package ruleapp connects the rules of tenants to a process: the API that changes them, and their
// evaluation by functions.
package ruleapp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/ruler"
)

// Evaluator evaluates the rules of tenants at each event of a schedule, and shows them. The
// composition passes it the query stage before it is built.
type Evaluator struct {
	process.Idle

	set    Settings
	query  *query.Stage
	ingest *ingest.Stage
	runner *rulefn.Runner
	ctx    context.Context // ends when the stage drains
	cancel context.CancelFunc
}

var (
	_ process.Scheduled = (*Evaluator)(nil)
	_ process.Consumer  = (*Evaluator)(nil)
)

// New returns an evaluator.
func New(s Settings) *Evaluator { return &Evaluator{set: s} }

// ReadFrom names the stage that rules read from.
func (e *Evaluator) ReadFrom(q *query.Stage) { e.query = q }

// Build makes the evaluator a stage. It is built after the stage that it reads from. It writes
// segments itself, whatever the mode of the ingest stage of others is: rules that follow must see
// the results at once, and one object has the results of many groups.
func (e *Evaluator) Build(_ context.Context, p process.Parts) (process.Stage, error) {
	if e.query == nil {
		return nil, errors.New("evaluate rules: it needs a query stage in the same process")
	}
	direct := ingest.DefaultSettings()
	direct.Mode = ingest.Direct
	in, err := ingest.New(direct, p.Store, p.Registry, p.Logger, p.Now, ingest.Within(p.Memory))
	if err != nil {
		return nil, fmt.Errorf("evaluate rules: %w", err)
	}
	e.ingest = in
	sender, err := e.set.Rules.Sender()
	if err != nil {
		return nil, err
	}
	parts := rulefn.Parts{
		Store: p.Store, Reading: e.query, Sink: sink{in}, Sender: sender, Parser: parser.NewParser(query.ParserOptions()),
		Enter: func(ctx context.Context, id string) context.Context {
			return query.WithSince(tenant.With(ctx, id), p.Now())
		},
		Retry: passes, Registry: p.Registry, Logger: p.Logger, Now: p.Now,
	}
	if e.set.QueueURL != "" {
		if parts.Queue, err = sqsqueue.Open(e.set.QueueURL, p.Registry); err != nil {
			return nil, fmt.Errorf("evaluate rules: %w", err)
		}
	}
	if e.runner, err = rulefn.New(e.set.Rules, parts); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Tick implements process.Scheduled.
func (e *Evaluator) Tick(ctx context.Context, at time.Time) error {
	ctx, stop := process.Until(ctx, e.ctx)
	defer stop()
	return e.runner.Tick(ctx, at)
}

// Consume implements process.Consumer. Only what is no message with rule groups is delivered again:
// the next tick finds everything else that failed.
func (e *Evaluator) Consume(ctx context.Context, batch []lambda.Message) (failed []string, err error) {
	ctx, stop := process.Until(ctx, e.ctx)
	defer stop()
	for _, m := range batch {
		if err := e.runner.Work(ctx, []byte(m.Body)); errors.Is(err, rulefn.ErrMessage) {
			return nil, err
		}
	}
	return nil, nil
}

// Rules returns the groups that the tenant of ctx has set, with the results of their last
// evaluations by any invocation.
func (e *Evaluator) Rules(ctx context.Context) ([]*v1.RuleGroup, error) {
	return e.runner.Shown(ctx, tenant.From(ctx))
}

// Drain implements process.Stage.
func (e *Evaluator) Drain(ctx context.Context) error {
	e.cancel()
	if err := e.ingest.Close(ctx); err != nil {
		return fmt.Errorf("flush results of rules: %w", err)
	}
	return nil
}

// sink writes results of rules by an ingest stage. It implements rulefn.Sink.
type sink struct{ ingest *ingest.Stage }

// Write implements rulefn.Sink.
func (s sink) Write(ctx context.Context, id string, message []byte, samples int) (refused, err error) {
	return s.ingest.Append(ctx, id, int64(len(message)+samples*remotewrite.CostFloat), func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
		return remotewrite.Decode(remotewrite.V2, message, g, rules, room)
	})
}

// passes reports whether a query failed for a reason that passes: the store is away. Limits, also
// that of the process's memory, and damaged objects do not pass.
func passes(err error) bool {
	var (
		storage promql.ErrStorage
		limit   interface{ QueryLimit() bool }
		damaged *query.DamagedError
		gone    *query.GoneError
	)
	if errors.As(err, &limit) || errors.As(err, &damaged) {
		return false
	}
	// Upstream's engine gives errors of selectors that it reads itself no type, but this text.
	return errors.As(err, &storage) || errors.As(err, &gone) || strings.Contains(err.Error(), "expanding series: ")
}

// Settings of the evaluation by a function. The tags are those of package settings.
type Settings struct {
	Scheduled bool   `name:"ruler.scheduled" negatable:"" default:"false" help:"Evaluate the rules of tenants at each event of a schedule. The function then writes segments." when:"The AWS stack sets it in the function that evaluates rules."`
	QueueURL  string `name:"ruler.queue-url" placeholder:"URL" help:"URL of the SQS FIFO queue to which the function sends rule groups beyond --ruler.max-rules-per-invocation, and from which such functions receive them." when:"The AWS stack sets it."`
	APIURL    string `name:"ruler.api-url" placeholder:"URL" help:"URL at which another function serves the rules of tenants and their alerts. This one refuses requests for them with 501 and the URL." when:"The AWS stack sets it in the function that answers queries, if there are rules."`

	Rules rulefn.Settings `embed:""`
}

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	var alone error
	if s.QueueURL != "" && !s.Scheduled {
		alone = errors.New("ruler.queue-url: want --ruler.scheduled, too")
	}
	return errors.Join(settings.Check(s), s.Rules.Validate(), alone)
}

// rulesAPI serves the API for the rules of tenants. It implements process.Stage.
type rulesAPI struct {
	process.Idle

	routes []process.Route
}

// Routes implements process.Stage.
func (a rulesAPI) Routes() []process.Route { return a.routes }

// Editing returns the builder of the API for the rules of tenants. limits bound their expressions.
// changed is called after each edit.
func Editing(set ruler.Settings, limits expression.Limits, changed func()) process.Builder {
	set.Parser, set.Expressions = query.ParserOptions(), limits
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		var a rulesAPI
		for _, r := range ruler.Routes(set, p.Store, changed, p.Memory, p.Registry, p.Logger) {
			access := auth.Read
			if r.Changes {
				access = auth.Admin
			}
			a.routes = append(a.routes, process.Route{Pattern: r.Pattern, Name: r.Name, Access: access, Handler: r.Handler})
		}
		return a, nil
	}
}
