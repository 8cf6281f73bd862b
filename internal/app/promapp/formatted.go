package promapp

import (
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// formatted is an expression with its text, which upstream's manager asks for twice in each
// evaluation of a rule. Upstream's functions that walk through expressions do not know it.
type formatted struct {
	parser.Expr
	text string
}

// parsed returns the expression of a rule's text.
func parsed(p parser.Parser, text string) (parser.Expr, error) {
	e, err := p.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return &formatted{e, e.String()}, nil
}

// String implements parser.Node.
func (f *formatted) String() string { return f.text }

// dependencies is a controller of upstream's for rules whose expressions may be formatted.
type dependencies struct {
	of rules.RuleDependencyController
}

// AnalyseRules implements rules.RuleDependencyController.
func (d dependencies) AnalyseRules(all []rules.Rule) {
	bare, rule := make([]rules.Rule, len(all)), make(map[rules.Rule]rules.Rule, len(all))
	for i, r := range all {
		bare[i] = unformatted(r)
		rule[bare[i]] = r
	}
	d.of.AnalyseRules(bare)
	those := func(bare []rules.Rule) []rules.Rule {
		out := make([]rules.Rule, len(bare))
		for i, r := range bare {
			out[i] = rule[r]
		}
		return out
	}
	for i, r := range all {
		if found := bare[i].DependentRules(); found != nil { // else it is not known
			r.SetDependentRules(those(found))
		}
		if found := bare[i].DependencyRules(); found != nil {
			r.SetDependencyRules(those(found))
		}
	}
}

// unformatted returns a rule whose kind, name and expression are those of another one.
func unformatted(r rules.Rule) rules.Rule {
	e := r.Query()
	if f, ok := e.(*formatted); ok {
		e = f.Expr
	}
	if _, ok := r.(*rules.AlertingRule); ok {
		return rules.NewAlertingRule(r.Name(), e, 0, 0, r.Labels(), r.Labels(), r.Labels(), "", false, nil)
	}
	return rules.NewRecordingRule(r.Name(), e, r.Labels())
}
