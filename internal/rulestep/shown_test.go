package rulestep_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/appender"
	"github.com/promlake/promlake/internal/rulestate"
	"github.com/promlake/promlake/internal/rulestep"
	"github.com/promlake/promlake/internal/rulestore"
)

// TestShownBeforeAnEvaluation: what was not evaluated yet is unknown, also a rule that was added to
// a group since its last evaluation. A state keeps the beginning of an error.
func TestShownBeforeAnEvaluation(t *testing.T) {
	o := &rulestep.Options{
		Parser: parser.NewParser(parser.Options{}), Interval: time.Minute, ExternalURL: &url.URL{}, Link: func(string) string { return "" }, MaxSeries: 10,
		Retry: func(error) bool { return false }, Logger: slog.New(slog.DiscardHandler),
	}
	o.Prepare()
	def := rulestore.Group{Name: "g", Rules: []rulestore.Rule{{Record: "x", Expr: "a"}}}
	compile := func() *rulestep.Group {
		g, err := rulestep.Compile(o, "n", def)
		require.NoError(t, err)
		return g
	}
	health := func(state *rulestate.Group) (out []rules.RuleHealth) {
		shown, err := compile().Shown(state)
		require.NoError(t, err)
		require.Equal(t, state.Evaluated, shown.GetLastEvaluation())
		for _, r := range shown.Rules() {
			out = append(out, r.Health())
			require.Equal(t, r.Health() == rules.HealthUnknown, r.GetEvaluationTimestamp().IsZero())
		}
		return out
	}
	state := &rulestate.Group{}
	require.Equal(t, []rules.RuleHealth{rules.HealthUnknown}, health(state))

	failure := errors.New(strings.Repeat("é", 1000))
	failing := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, failure }
	to := appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })}
	state, _, err := compile().Eval(t.Context(), state, time.Unix(1_700_000_000, 0), rulestep.Data{Query: failing, To: to})
	require.NoError(t, err)
	def.Rules = append(def.Rules, rulestore.Rule{Alert: "New", Expr: "b"})
	require.Equal(t, []rules.RuleHealth{rules.HealthBad, rules.HealthUnknown}, health(state))
	kept := state.Rules[0].Error
	require.LessOrEqual(t, len(kept), 1024)
	require.True(t, utf8.ValidString(kept))
	require.True(t, strings.HasPrefix(kept, strings.Repeat("é", 500)), kept)
	require.True(t, strings.HasSuffix(kept, "…"))

	fine := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	state, _, err = compile().Eval(t.Context(), state, time.Unix(1_700_000_060, 0), rulestep.Data{Query: fine, To: to})
	require.NoError(t, err)
	require.Equal(t, []rules.RuleHealth{rules.HealthGood, rules.HealthGood}, health(state))
}
