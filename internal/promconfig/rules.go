package promconfig

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/rules"
)

// Rules checks rule files.
func (c *Checker) Rules(paths []string) Result { return c.rules(paths, model.UTF8Validation) }

func (c *Checker) rules(paths []string, scheme model.ValidationScheme) (r Result) {
	for _, path := range paths {
		c.say("Checking %s", path)
		groups, errs := rulefmt.ParseFile(path, c.IgnoreUnknownFields, scheme, c.Parser, c.Logger)
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
// in the order of the file.
func duplicates(groups *rulefmt.RuleGroups) (out []string) {
	seen := map[string]int{}
	for _, g := range groups.Groups {
		for _, rule := range g.Rules {
			name := rule.Record
			if rule.Alert != "" {
				name = rule.Alert
			}
			what := fmt.Sprintf("Metric: %s\nLabel(s): %s", name, rules.FromMaps(g.Labels, rule.Labels))
			if seen[what]++; seen[what] == 2 {
				out = append(out, what)
			}
		}
	}
	return out
}
