package queryapp

import (
	"context"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb"

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
)

// backend is an api.Backend: the engine evaluates queries, the stage reads their data.
type backend struct {
	promql.QueryEngine
	*query.Stage
}

// Explain describes how a query is evaluated.
func (b backend) Explain(ctx context.Context, q api.ExplainQuery) (any, error) {
	return b.Stage.Explain(ctx, query.Question{Text: q.Text, Start: q.Start, End: q.End, Step: q.Step, Lookback: q.Lookback, Analyze: q.Analyze, WithoutStatements: q.WithoutStatements})
}

// Lake describes the objects of a tenant.
func (b backend) Lake(ctx context.Context, columns bool) (any, error) {
	return b.Stage.Lake(ctx, columns)
}

// SQL runs a SQL statement.
func (b backend) SQL(ctx context.Context, q api.SQLQuery, out api.SQLOutput) error {
	return b.Stage.SQL(ctx, query.Statement{Text: q.Text, Params: q.Params, Format: q.Format, Expressions: q.Expressions}, out)
}

// Stats counts series by metric name, the only label by which the stage counts and the API asks.
func (b backend) Stats(ctx context.Context, statsByLabelName string, limit int) (*tsdb.Stats, error) {
	if statsByLabelName != model.MetricNameLabel {
		return nil, fmt.Errorf("count series by label %s: only %s is counted", statsByLabelName, model.MetricNameLabel)
	}
	return b.Stage.Stats(ctx, limit)
}
