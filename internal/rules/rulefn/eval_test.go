package rulefn_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// TestQueriesOfTemplates: an evaluation is repeated if the query of a template fails for a reason
// that passes. The error of another one is the text, as upstream has it.
func TestQueriesOfTemplates(t *testing.T) {
	away, wrong := errors.New("the store is away"), errors.New("wrong")
	o := &rulefn.Options{
		Parser: parser.NewParser(parser.Options{}), Interval: time.Minute, ExternalURL: &url.URL{}, Link: func(string) string { return "" }, MaxSeries: 10,
		Retry: func(err error) bool { return errors.Is(err, away) }, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}
	o.Prepare()
	text := `{{ with query "inner" }}{{ . | first | value }}{{ end }}`
	for name, rule := range map[string]rulestore.Rule{
		"label":      {Alert: "A", Expr: "outer", Labels: map[string]string{"text": text}},
		"annotation": {Alert: "A", Expr: "outer", Annotations: map[string]string{"text": text}},
	} {
		g, err := rulefn.Compile(o, "n", rulestore.Group{Name: "g", Rules: []rulestore.Rule{rule}})
		require.NoError(t, err)
		eval := func(inner error) (*rulestate.Group, error) {
			state, _, err := g.Eval(t.Context(), &rulestate.Group{}, time.Unix(60, 0), rulefn.Data{Query: func(_ context.Context, expr string, _ time.Time) (promql.Vector, error) {
				if expr == "inner" && inner != nil {
					return nil, inner
				}
				return promql.Vector{{Metric: labels.EmptyLabels(), F: 3}}, nil
			}, To: appender.V1{Appendable: appender.New(func(*appender.Transaction) error { return nil })}})
			return state, err
		}
		_, err = eval(away)
		require.ErrorIs(t, err, away, name)
		require.ErrorContains(t, err, `evaluate rule 1, "A", of group "g" of namespace "n"`)
		for _, tc := range []struct {
			inner error
			want  string
		}{{nil, "3"}, {wrong, "<error expanding template"}} {
			state, err := eval(tc.inner)
			require.NoError(t, err)
			require.Len(t, state.Rules[0].Alerts, 1)
			a := state.Rules[0].Alerts[0]
			require.Contains(t, a.Labels.Get("text")+a.Annotations.Get("text"), tc.want, name)
		}
	}
}
