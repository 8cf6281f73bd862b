package promapp

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
)

// TestFormattedRulesDependOnOthers: rules of expressions with their texts have the dependencies
// that upstream's controller finds for those of the parser.
func TestFormattedRulesDependOnOthers(t *testing.T) {
	p := parser.NewParser(query.ParserOptions())
	upstream := func() rules.RuleDependencyController {
		o := &rules.ManagerOptions{}
		rules.NewManager(o)
		return o.RuleDependencyController
	}()
	group := func(parse func(text string) (parser.Expr, error), texts []string) (out []rules.Rule) {
		for i, text := range texts {
			e, err := parse(text)
			require.NoError(t, err)
			name := string(rune('a' + i))
			if i == 1 {
				out = append(out, rules.NewAlertingRule(name, e, time.Minute, 0, labels.EmptyLabels(), labels.EmptyLabels(), labels.EmptyLabels(), "", true, nil))
				continue
			}
			out = append(out, rules.NewRecordingRule(name, e, labels.EmptyLabels()))
		}
		return out
	}
	names := func(all []rules.Rule) []string {
		if all == nil {
			return nil
		}
		out := []string{}
		for _, r := range all {
			out = append(out, r.Name())
		}
		slices.Sort(out)
		return slices.Compact(out) // upstream names a rule once for each of its selectors
	}
	for _, texts := range [][]string{
		{`sum(up)`, `a > 0`, `a + x + a`, `ALERTS{alertname="b"}`, `x`, `{__name__=~"[ab]|c"} or d`},
		{`up`, `b`, `e`, `{job="x"}`, `a`}, // uses are of earlier rules
		{`{job="x"}`, `up`},
		{`up`, `{job="x"}`, `a`}, // they may depend on any
		{`up`, `up`},
		{`up`},
	} {
		want := group(p.ParseExpr, texts)
		got := group(func(text string) (parser.Expr, error) { return parsed(p, text) }, texts)
		upstream.AnalyseRules(want)
		dependencies{upstream, p}.AnalyseRules(got)
		for i := range want {
			require.Equal(t, want[i].Query().String(), got[i].Query().String())
			require.ElementsMatch(t, names(want[i].DependentRules()), names(got[i].DependentRules()), texts[i])
			require.ElementsMatch(t, names(want[i].DependencyRules()), names(got[i].DependencyRules()), texts[i])
			require.Equal(t, want[i].NoDependentRules(), got[i].NoDependentRules(), texts[i])
			require.Equal(t, want[i].NoDependencyRules(), got[i].NoDependencyRules(), texts[i])
		}
	}
	_, err := parsed(p, "sum(")
	require.Error(t, err)
}
