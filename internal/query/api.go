package query

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

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

// What Stage.Explain, Stage.Estimate and Stage.SQL take and return.
type (
	Question    = request.Question
	Statement   = request.Statement
	Explanation = explain.Explanation
	Estimate    = request.Estimate
	CostLimits  = request.CostLimits
)

// WithSince returns ctx whose reads see everything that was stored before t.
func WithSince(ctx context.Context, t time.Time) context.Context { return request.WithSince(ctx, t) }

// ParserOptions are those of every parser that reads users' PromQL.
func ParserOptions() parser.Options { return engine.ParserOptions() }
