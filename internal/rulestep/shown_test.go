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
// a group since its last evaluation. A state keeps the start of an error. Times are those of the
// clock, or of the schedule if the state was left by a program that measured nothing.
func TestShownBeforeAnEvaluation(t *testing.T) {
	clock := time.Unix(1_700_000_100, 5).UTC()
	o := &rulestep.Options{
		Parser: parser.NewParser(parser.Options{}), Interval: time.Minute, ExternalURL: &url.URL{}, Link: func(string) string { return "" }, MaxSeries: 10,
		Retry: func(error) bool { return false }, Now: func() time.Time { clock = clock.Add(time.Second / 4); return clock }, Logger: slog.New(slog.DiscardHandler),
	}
	o.Prepare()
	def := rulestore.Group{Name: "g", Rules: []rulestore.Rule{{Record: "x", Expr: "a"}}}
	compile := func() *rulestep.Group {
		g, err := rulestep.Compile(o, "n", def)
		require.NoError(t, err)
		return g
	}
	show := func(state *rulestate.Group) *rules.Group {
		shown, err := compile().Shown(state)
		require.NoError(t, err)
		return shown
	}
	health := func(state *rulestate.Group) (out []rules.RuleHealth) {
		shown := show(state)
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
	at := time.Unix(1_700_000_000, 0).UTC()
	state, _, err := compile().Eval(t.Context(), state, at, rulestep.Data{Query: failing, To: to})
	require.NoError(t, err)
	def.Rules = append(def.Rules, rulestore.Rule{Alert: "New", Expr: "b"})
	require.Equal(t, []rules.RuleHealth{rules.HealthBad, rules.HealthUnknown}, health(state))
	kept := state.Rules[0].Error
	require.LessOrEqual(t, len(kept), 1024)
	require.True(t, utf8.ValidString(kept))
	require.True(t, strings.HasPrefix(kept, strings.Repeat("é", 500)), kept)
	require.True(t, strings.HasSuffix(kept, "…"))

	// The clock goes on by a quarter of a second each time that it is read.
	shown := show(state)
	require.Equal(t, time.Unix(1_700_000_100, 250_000_005).UTC(), shown.GetLastEvaluation())
	require.Equal(t, 750*time.Millisecond, shown.GetEvaluationTime())
	require.Equal(t, time.Unix(1_700_000_100, 500_000_005).UTC(), shown.Rules()[0].GetEvaluationTimestamp())
	require.Equal(t, 250*time.Millisecond, shown.Rules()[0].GetEvaluationDuration())
	require.Zero(t, shown.Rules()[1].GetEvaluationDuration())
	unmeasured := *state
	unmeasured.Measured, unmeasured.Rules = rulestate.Measured{}, []rulestate.Rule{{Key: state.Rules[0].Key}}
	shown = show(&unmeasured)
	require.Equal(t, []any{at, at}, []any{shown.GetLastEvaluation(), shown.Rules()[0].GetEvaluationTimestamp()})
	require.Zero(t, shown.GetEvaluationTime()+shown.Rules()[0].GetEvaluationDuration())

	fine := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	state, _, err = compile().Eval(t.Context(), state, at.Add(time.Minute), rulestep.Data{Query: fine, To: to})
	require.NoError(t, err)
	require.Equal(t, []rules.RuleHealth{rules.HealthGood, rules.HealthGood}, health(state))
}
