package promconfig

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Rules checks rule files.
func (c *Checker) Rules(paths []string) Result { return c.rules(paths, model.UTF8Validation) }

func (c *Checker) rules(paths []string, scheme model.ValidationScheme) (r Result) {
	for _, path := range paths {
		c.say("Checking %s", path)
		groups, errs := ruletemplate.Limits{}.ParseFile(path, c.IgnoreUnknownFields, scheme, c.Parser, c.Logger)
		r.add(c.groupsOf(groups, errs))
		c.say("")
	}
	return r
}

func (c *Checker) groupsOf(groups *rulefmt.RuleGroups, errs []error) (r Result) {
	if len(errs) > 0 {
		c.complain("  FAILED:")
		for _, err := range errs {
			c.complain("%s", err)
		}
		return Result{Errors: true}
	}
	if twice := duplicates(groups); c.Lint.DuplicateRules && len(twice) > 0 {
		c.complain("  FAILED:\nlint error %d duplicate rule(s) found.", len(twice))
		for _, what := range twice {
			c.complain("%s", what)
		}
		c.complain("Might cause inconsistency while recording expressions")
		return Result{Lints: true}
	}
	n := 0
	for _, g := range groups.Groups {
		n += len(g.Rules)
	}
	c.say("  SUCCESS: %d rules found", n)
	return r
}

// duplicates describes the rules of a file that have the name and labels of another one, each once,
// by name and labels.
func duplicates(groups *rulefmt.RuleGroups) (out []string) {
	type rule struct {
		name   string
		labels labels.Labels
	}
	var all []rule
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			all = append(all, rule{cmp.Or(r.Alert, r.Record), rules.FromMaps(g.Labels, r.Labels)})
		}
	}
	compare := func(a, b rule) int {
		return cmp.Or(strings.Compare(a.name, b.name), labels.Compare(a.labels, b.labels))
	}
	slices.SortStableFunc(all, compare)
	for i := 1; i < len(all); i++ {
		if compare(all[i-1], all[i]) != 0 || i > 1 && compare(all[i-2], all[i]) == 0 {
			continue
		}
		what := "Metric: " + all[i].name + "\nLabel(s):"
		all[i].labels.Range(func(l labels.Label) { what += "\n\t" + l.Name + ": " + l.Value })
		out = append(out, what)
	}
	return out
}
