package query

import (
	"context"
	"encoding/json"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/snapshot"
	"github.com/promlake/promlake/internal/query/source"
)

// The errors that callers of a Stage distinguish.
type (
	LimitError    = request.LimitError
	DamagedError  = source.DamagedError
	GoneError     = snapshot.GoneError
	TooOldError   = snapshot.TooOldError
	QuestionError = explain.QuestionError
)

// What Stage.Explain and Stage.Estimate take and return.
type (
	Question    = explain.Question
	Explanation = explain.Explanation
	Estimate    = request.Estimate
	CostLimits  = request.CostLimits
)

// Statement is a SQL statement for Stage.SQL.
type Statement struct {
	Text   string
	Params json.RawMessage // an array, or an object by name; nil = none
	Format string          // json, csv, arrow or parquet

	Expressions expression.Limits // of the PromQL in it
}

// WithSince returns ctx whose reads see everything that was stored before t.
func WithSince(ctx context.Context, t time.Time) context.Context { return request.WithSince(ctx, t) }

// ParserOptions are those of every parser that reads users' PromQL.
func ParserOptions() parser.Options { return engine.ParserOptions() }
