package fuzzpromql

import (
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
)

// TestGeneratorLeavesNothingOut: the generator uses every function, aggregation, operator and
// modifier of the language.
func TestGeneratorLeavesNothingOut(t *testing.T) {
	const queries = 5000
	p, g, seen := parser.NewParser(query.ParserOptions()), generator{rand.New(rand.NewPCG(1, 1))}, map[string]int{}
	read := 0
	for range queries {
		e, err := p.ParseExpr(g.query())
		if err != nil {
			continue
		}
		read++
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			features(n, func(feature string) { seen[feature]++ })
			return nil
		})
	}
	require.Greater(t, read, queries*9/10, "queries that can be read")
	for name := range parser.Functions {
		require.Positive(t, seen[name], "calls of %s", name)
	}
	for item, name := range parser.ItemTypeStr {
		if item.IsAggregator() || item.IsOperator() && item != parser.EQL_REGEX && item != parser.NEQ_REGEX {
			require.Positive(t, seen[name], "uses of %s", name)
		}
	}
	for _, name := range []string{
		"bool", "on", "ignoring", "group_left", "group_right", "fill", "by", "without", "offset", "@", "@ start", "@ end", "subquery",
		"subquery step", "anchored", "smoothed", "duration expression",
	} {
		require.Positive(t, seen[name], "uses of %s", name)
	}
}

// features returns the features of the language that a node uses.
func features(n parser.Node, use func(string)) {
	when := func(is bool, name string) {
		if is {
			use(name)
		}
	}
	switch n := n.(type) {
	case *parser.Call:
		use(n.Func.Name)
	case *parser.AggregateExpr:
		use(n.Op.String())
		when(n.Without, "without")
		when(!n.Without && len(n.Grouping) > 0, "by")
	case *parser.BinaryExpr:
		use(n.Op.String())
		when(n.ReturnBool, "bool")
		if m := n.VectorMatching; m != nil {
			when(m.On, "on")
			when(!m.On && len(m.MatchingLabels) > 0, "ignoring")
			when(m.Card == parser.CardManyToOne, "group_left")
			when(m.Card == parser.CardOneToMany, "group_right")
			when(m.FillValues.LHS != nil || m.FillValues.RHS != nil, "fill")
		}
	case *parser.UnaryExpr:
		use(n.Op.String())
	case *parser.VectorSelector:
		when(n.OriginalOffset != 0, "offset")
		when(n.Timestamp != nil, "@")
		when(n.StartOrEnd == parser.START, "@ start")
		when(n.StartOrEnd == parser.END, "@ end")
		when(n.Anchored, "anchored")
		when(n.Smoothed, "smoothed")
	case *parser.MatrixSelector:
		when(n.RangeExpr != nil, "duration expression")
	case *parser.SubqueryExpr:
		use("subquery")
		when(n.Step != 0, "subquery step")
	}
}
