package explain

import (
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/translate"
)

// Translate returns a statement over the catalog's tables that has the rows of a query, whose
// Lookback must be set. It reads no store. It fails with a *QuestionError.
func Translate(ask Question) (out translate.Statement, err error) {
	expr, err := parser.NewParser(engine.ParserOptions()).ParseExpr(ask.Text)
	if err == nil {
		out, err = translate.Translate(translate.Query{
			Expr: expr, Start: ask.Start, End: ask.End, Step: ask.Step, Lookback: ask.Lookback, SubqueryStep: engine.DefaultSubqueryStep,
		})
	}
	if err != nil {
		return out, &QuestionError{err}
	}
	return out, nil
}
