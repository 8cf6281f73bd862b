package ruler

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// group is a rule group with the fields of Mimir's that Prometheus' do not have.
type group struct {
	rulefmt.RuleGroup `yaml:",inline"`

	SourceTenants   []string        `yaml:"source_tenants"`
	Align           bool            `yaml:"align_evaluation_time_on_interval"`
	EvaluationDelay *model.Duration `yaml:"evaluation_delay"` // former name of query_offset
}

// charging charges what a body takes in memory, with the slices that it outgrew. It implements
// io.Writer.
type charging struct{ *memory.Work }

// Write implements io.Writer.
func (c charging) Write(p []byte) (int, error) { return len(p), c.Charge(3 * int64(len(p))) }

// nodeBytes is the memory of a value of YAML while a body is parsed, at most, about.
const nodeBytes = 640

// parse reads the YAML of one group and checks it as Prometheus checks the groups of a rule file.
// An error names the group, the rule and its line in the body.
func (a *api) parse(body []byte) (rulestore.Group, error) {
	var none rulestore.Group
	root, err := document(body)
	if err != nil {
		return none, err
	}
	var g group
	dec := yaml.NewDecoder(bytes.NewReader(body))
	dec.KnownFields(true)
	if err := dec.Decode(&g); err != nil {
		return none, fmt.Errorf("unable to decode rule group: %w", err)
	}
	if g.Name == "" {
		return none, errors.New("the rule group has no name")
	}
	if err := a.fields(&g); err != nil {
		return none, fmt.Errorf("rule group %q: %w", g.Name, err)
	}
	// By upstream's rules. The texts of expressions and templates are bounded before they are
	// parsed.
	var places rulefmt.RuleGroupNode // the lines of fields
	if err := root.Decode(&places); err != nil {
		return none, fmt.Errorf("unable to decode rule group: %w", err)
	}
	if err := a.settings.Templates.Group(g.RuleGroup); err != nil {
		return none, err
	}
	var errs []error
	if g.Limit < 0 {
		errs = append(errs, fmt.Errorf("group %q: limit: want 0 (none) or more, got %d", g.Name, g.Limit))
	}
	for name, v := range g.Labels {
		if !model.UTF8Validation.IsValidLabelName(name) || name == model.MetricNameLabel {
			errs = append(errs, fmt.Errorf("group %q: invalid label name: %s", g.Name, name))
		}
		if !model.LabelValue(v).IsValid() {
			errs = append(errs, fmt.Errorf("group %q: invalid label value: %s", g.Name, v))
		}
	}
	for i, r := range g.Rules {
		name := r.Record
		if r.Alert != "" {
			name = r.Alert
		}
		if err := a.settings.Expressions.Check(r.Expr); err != nil {
			return none, fmt.Errorf("group %q, rule %d, %q: %w", g.Name, i+1, name, err)
		}
		n := expression.ParsedBytes(r.Expr)
		if err := a.memory.TryAcquire(n); err != nil {
			return none, err
		}
		found := r.Validate(places.Rules[i], model.UTF8Validation, a.parser)
		a.memory.Release(n)
		for _, wrong := range found {
			errs = append(errs, &rulefmt.Error{Group: g.Name, Rule: i + 1, RuleName: name, Err: wrong})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return none, err
	}
	return rulestore.FromUpstream(g.RuleGroup), nil
}

// document returns the only value of a body, which must be a mapping of texts that are UTF-8.
func document(body []byte) (*yaml.Node, error) {
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("unable to decode rule group: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document with one rule group, got several")
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("want a rule group with the fields name, interval and rules, got something else")
	}
	value := root.Content[0]
	for i := 0; i < len(value.Content); i += 2 {
		if value.Content[i].Value == "groups" {
			return nil, errors.New("want one rule group with the fields name, interval and rules, got a file with groups: send each of its groups by itself")
		}
	}
	if err := readable(value); err != nil {
		return nil, err
	}
	return value, nil
}

// maxFields is the number of fields of a mapping of YAML. The decoder compares each with all
// others, and keeps an error for each pair of equal ones.
const maxFields = 1000

// readable refuses binary data, mappings with more than maxFields fields, and fields that are there
// twice. Aliases repeat nodes that are somewhere else.
func readable(n *yaml.Node) error {
	if n.ShortTag() == "!!binary" {
		return fmt.Errorf("line %d: binary data is no text", n.Line)
	}
	if n.Kind == yaml.MappingNode {
		if fields := len(n.Content) / 2; fields > maxFields {
			return fmt.Errorf("line %d: %w", n.Line, &rulestore.LimitError{Name: limitFields, What: "fields of a mapping", Got: int64(fields), Max: maxFields})
		}
		lines := map[string]int{}
		for i := 0; i < len(n.Content); i += 2 {
			field := n.Content[i]
			if first, ok := lines[field.Value]; ok && field.Kind == yaml.ScalarNode {
				return fmt.Errorf("line %d: field %q is already in line %d", field.Line, field.Value, first)
			}
			lines[field.Value] = field.Line
		}
	}
	for _, below := range n.Content {
		if err := readable(below); err != nil {
			return err
		}
	}
	return nil
}

// fields checks the fields of a group besides its rules, and puts evaluation_delay in its place.
func (a *api) fields(g *group) error {
	if len(g.SourceTenants) > 0 {
		return errors.New("source_tenants: federated rule groups are not supported; a group reads the data of its own tenant only")
	}
	if g.Align {
		return errors.New("align_evaluation_time_on_interval is not supported; evaluations are spread over the interval as in Prometheus")
	}
	if g.EvaluationDelay != nil {
		if g.QueryOffset != nil && *g.QueryOffset != *g.EvaluationDelay {
			return errors.New("evaluation_delay is the former name of query_offset: want one of them, got both")
		}
		g.QueryOffset = g.EvaluationDelay
	}
	if n := len(g.Rules); n > a.settings.MaxRules {
		return &rulestore.LimitError{Name: limitRules, What: "rules of a group", Got: int64(n), Max: int64(a.settings.MaxRules), Flag: "--ruler.max-rules-per-rule-group"}
	}
	if d := time.Duration(g.Interval); d != 0 && d < a.settings.MinInterval {
		return fmt.Errorf("interval: want %s or more (--ruler.min-rule-evaluation-interval), got %s", a.settings.MinInterval, d)
	}
	return nil
}
