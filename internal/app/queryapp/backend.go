package queryapp

import (
	"context"

	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/api/weights"
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
