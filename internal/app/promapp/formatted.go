package promapp

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/prom/expression"
)

// formatted is the expression of a rule, of which only the text is kept: upstream's manager
// evaluates rules by it.
type formatted struct {
	*expression.Text
	group *analysis // of the rule's group; nil: upstream's manager asks for it
}

// analysis says for each rule of a group, by their indexes, which earlier rules it uses. uses is nil
// if that is not known: then the rules are evaluated one after another.
type analysis struct{ uses [][]int }

// dependencies is a controller of upstream's for rules whose expressions are formatted.
type dependencies struct {
	of     rules.RuleDependencyController
	parser parser.Parser
}

// AnalyseRules implements rules.RuleDependencyController.
func (d dependencies) AnalyseRules(all []rules.Rule) {
	if len(all) == 0 {
		return
	}
	var a *analysis
	if f, ok := all[0].Query().(*formatted); ok {
		a = f.group
	}
	if a == nil {
		var err error
		a, err = d.analyse(all, func(i int) (parser.Expr, error) { return d.parser.ParseExpr(all[i].Query().String()) })
		if err != nil { // the texts are the parser's
			return
		}
	}
	if a.uses == nil {
		return
	}
	users := make([][]rules.Rule, len(all))
	for i, r := range all {
		used := make([]rules.Rule, 0, len(a.uses[i]))
		for _, at := range a.uses[i] {
			used, users[at] = append(used, all[at]), append(users[at], r)
		}
		r.SetDependencyRules(used)
	}
	for i, r := range all {
		r.SetDependentRules(users[i])
	}
}

// analyse finds out by upstream's controller which rules of a group use which. It asks for the
// expression of each rule once, in their order, and holds one at a time.
func (d dependencies) analyse(all []rules.Rule, expr func(i int) (parser.Expr, error)) (*analysis, error) {
	before, uses, known := make([]rules.Rule, 0, len(all)), make([][]int, len(all)), true
	last := like(all[0], &parser.NumberLiteral{}) // upstream does not analyse the only rule of a group
	for i, r := range all {
		e, err := expr(i)
		if err != nil {
			return nil, err
		}
		if known {
			one := like(r, e)
			d.of.AnalyseRules(append(slices.Clone(before), one, last))
			found := one.DependencyRules()
			known = found != nil || len(all) == 1
			for _, f := range found {
				uses[i] = append(uses[i], slices.Index(before, f))
			}
			before = append(before, like(r, &parser.NumberLiteral{}))
		}
	}
	if !known {
		return &analysis{}, nil
	}
	return &analysis{uses}, nil
}

// like returns a rule with the kind and the name of another one, and an expression.
func like(r rules.Rule, e parser.Expr) rules.Rule {
	none := labels.EmptyLabels()
	if _, ok := r.(*rules.AlertingRule); ok {
		return rules.NewAlertingRule(r.Name(), e, 0, 0, none, none, none, "", false, nil)
	}
	return rules.NewRecordingRule(r.Name(), e, none)
}

// parsed returns the expression of a rule's text.
func parsed(p parser.Parser, text string) (parser.Expr, error) {
	e, err := p.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("parse expression %s: %w", text, err)
	}
	return &formatted{Text: expression.TextOf(e)}, nil
}
