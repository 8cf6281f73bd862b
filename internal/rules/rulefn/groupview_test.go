package rulefn_test

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
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// TestShownBeforeAnEvaluation: what was not evaluated yet is unknown, also a rule that was added to
// a group since its last evaluation. A state keeps the start of an error. Times are those of the
// clock, or of the schedule if the state was left by a program that measured nothing.
func TestShownBeforeAnEvaluation(t *testing.T) {
	clock := time.Unix(1_700_000_100, 5).UTC()
	o := &rulefn.Options{
		Parser: parser.NewParser(parser.Options{}), Interval: time.Minute, ExternalURL: &url.URL{}, Link: func(string) string { return "" }, MaxSeries: 10,
		Retry: func(error) bool { return false }, Now: func() time.Time { clock = clock.Add(time.Second / 4); return clock }, Logger: slog.New(slog.DiscardHandler),
	}
	o.Prepare()
	def := rulestore.Group{Name: "g", Rules: []rulestore.Rule{{Record: "x", Expr: "a"}}}
	compile := func() *rulefn.Group {
		g, err := rulefn.Compile(o, "n", def)
		require.NoError(t, err)
		return g
	}
	show := func(state *rulestate.Group) (*v1.RuleGroup, []v1.RecordingRule) {
		shown := compile().Shown(state, nil)
		var all []v1.RecordingRule
		for _, rule := range shown.Rules {
			r, _ := rule.(v1.RecordingRule)
			if a, ok := rule.(v1.AlertingRule); ok {
				r = v1.RecordingRule{Health: a.Health, EvaluationTime: a.EvaluationTime, LastEvaluation: a.LastEvaluation}
			}
			all = append(all, r)
		}
		return shown, all
	}
	health := func(state *rulestate.Group) (out []rules.RuleHealth) {
		_, all := show(state)
		for _, r := range all {
			out = append(out, r.Health)
			require.Equal(t, r.Health == rules.HealthUnknown, r.LastEvaluation.IsZero())
		}
		return out
	}
	state := &rulestate.Group{}
	require.Equal(t, []rules.RuleHealth{rules.HealthUnknown}, health(state))

	failure := errors.New(strings.Repeat("é", 1000))
	failing := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, failure }
	to := appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })}
	at := time.Unix(1_700_000_000, 0).UTC()
	state, _, err := compile().Eval(t.Context(), state, at, rulefn.Data{Query: failing, To: to})
	require.NoError(t, err)
	def.Rules = append(def.Rules, rulestore.Rule{Alert: "New", Expr: "b"})
	require.Equal(t, []rules.RuleHealth{rules.HealthBad, rules.HealthUnknown}, health(state))
	kept := state.Rules[0].Error
	require.LessOrEqual(t, len(kept), 1024)
	require.True(t, utf8.ValidString(kept))
	require.True(t, strings.HasPrefix(kept, strings.Repeat("é", 500)), kept)
	require.True(t, strings.HasSuffix(kept, "…"))

	// The clock goes on by a quarter of a second each time that it is read.
	shown, all := show(state)
	require.Equal(t, time.Unix(1_700_000_100, 250_000_005).UTC(), shown.LastEvaluation)
	require.Equal(t, 0.75, shown.EvaluationTime)
	require.Equal(t, time.Unix(1_700_000_100, 500_000_005).UTC(), all[0].LastEvaluation)
	require.Equal(t, 0.25, all[0].EvaluationTime)
	require.Zero(t, all[1].EvaluationTime)
	unmeasured := *state
	unmeasured.Measured, unmeasured.Rules = rulestate.Measured{}, []rulestate.Rule{{Key: state.Rules[0].Key}}
	shown, all = show(&unmeasured)
	require.Equal(t, []any{at, at}, []any{shown.LastEvaluation, all[0].LastEvaluation})
	require.Zero(t, shown.EvaluationTime+all[0].EvaluationTime)

	fine := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	state, _, err = compile().Eval(t.Context(), state, at.Add(time.Minute), rulefn.Data{Query: fine, To: to})
	require.NoError(t, err)
	require.Equal(t, []rules.RuleHealth{rules.HealthGood, rules.HealthGood}, health(state))
}
