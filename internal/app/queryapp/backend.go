package queryapp

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
	"github.com/promlake/promlake/internal/query/usage"
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

// Lake describes the objects of a tenant.
func (b backend) Lake(ctx context.Context, columns bool) (any, error) {
	return b.Stage.Lake(ctx, columns)
}

// keptUsage lets a process save what its queries ask for. nil saves nothing.
type keptUsage struct {
	*process.Work // saves at intervals
	counter       *usage.Counter
}

// keepUsage begins to save at intervals. A function saves after requests instead, because Lambda
// stops it between them.
func keepUsage(s Settings, c *usage.Counter) *keptUsage {
	if s.Query.UsageInterval == 0 {
		return nil
	}
	run := c.Run
	if s.function {
		run = func(context.Context) {}
	}
	return &keptUsage{process.Begin("the saving of what queries ask for", run), c}
}

// lastSave is the longest time that the save at the end takes: other stages end after this one.
const lastSave = 2 * time.Second

// end saves for the last time, in at most half of the time that ctx leaves.
func (k *keptUsage) end(ctx context.Context) error {
	if k == nil {
		return nil
	}
	if err := k.End(ctx); err != nil {
		return err
	}
	pause := lastSave
	if end, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	k.counter.Save(ctx)
	return nil
}
