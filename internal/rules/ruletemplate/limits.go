// Package ruletemplate bounds the templates in labels and annotations of alerting rules: their text
// before it is parsed, and what they do before they are expanded. Upstream's parser is recursive,
// and upstream's expansion has no limit of memory or time.
package ruletemplate

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/expression"
)

// Limits are the limits of templates. The tags are those of package settings. A zero field means
// its default.
type Limits struct {
	// MaxBytes and MaxDepth bound each text: see Check. MaxText bounds one expansion, MaxSteps all
	// expansions of one evaluation of a rule: see Guard.
	MaxBytes int `name:"ruler.max-template-bytes" type:"bytes" default:"64KiB" min:"1" help:"Length of the template of a label or annotation of an alerting rule." when:"Raise it if generated rules are refused."`
	MaxDepth int `name:"ruler.max-template-depth" default:"100" min:"1" help:"Depth to which blocks and parentheses of a template, and calls of its defined templates, may nest." when:"Raise it if generated rules are refused."`
	MaxText  int `name:"ruler.max-template-text" type:"bytes" default:"1MiB" min:"1KiB" help:"Bytes of text that one template may make for one alert, its output and texts in between together. A rule beyond it fails." when:"Rarely."`
	MaxSteps int `name:"ruler.max-template-steps" default:"1000000" min:"1" help:"Steps of the templates of a rule at one evaluation, for all of its alerts: a function, and each 16 bytes that it reads or writes, is a step. A rule beyond it fails." when:"Raise it if rules with many thousands of alerts fail."`

	// Queries bound the expressions that templates ask for.
	Queries expression.Limits `kong:"-"`
}

// Error reports a template that exceeds a limit.
type Error struct {
	Limit  string // its name in metrics
	What   string // is limited
	Value  int
	Needed int // at least
	Flag   string
}

// Error implements error.
func (e *Error) Error() string {
	return settings.ForOperator(fmt.Sprintf("template exceeds the limit of %d %s, it has at least %d; simplify it, or raise %s", e.Value, e.What, e.Needed, e.Flag))
}

// The limits by their names in metrics.
const (
	limitBytes = "template_bytes"
	limitDepth = "template_depth"
	limitText  = "template_text"
	limitSteps = "template_steps"
)

// Names are the names of the limits in metrics.
func Names() []string { return []string{limitBytes, limitDepth, limitText, limitSteps} }

func (l Limits) tooDeep() *Error {
	return &Error{limitDepth, "levels of blocks, parentheses and calls", l.MaxDepth, l.MaxDepth + 1, "--ruler.max-template-depth"}
}

func (l Limits) filled() Limits {
	settings.Fill(&l)
	return l
}

// Check returns an *Error if a text is too long or nests too deeply to be parsed. It takes linear
// time and almost no memory.
func (l Limits) Check(text string) error {
	l = l.filled()
	if len(text) > l.MaxBytes {
		return &Error{limitBytes, "bytes", l.MaxBytes, len(text), "--ruler.max-template-bytes"}
	}
	if deeper(text, l.MaxDepth) {
		return l.tooDeep()
	}
	return nil
}

// Rule checks the texts of an alerting rule. An error names the label or annotation.
func (l Limits) Rule(labels, annotations map[string]string) error {
	for _, of := range []struct {
		kind  string
		texts map[string]string
	}{{"label", labels}, {"annotation", annotations}} {
		for _, name := range slices.Sorted(maps.Keys(of.texts)) {
			if err := l.Check(of.texts[name]); err != nil {
				return fmt.Errorf("%s %q: %w", of.kind, name, err)
			}
		}
	}
	return nil
}

// Group checks the texts of the alerting rules of a group. An error names the rule.
func (l Limits) Group(g rulefmt.RuleGroup) error {
	if err := l.Rule(g.Labels, nil); err != nil { // labels of the group are templates of its alerts
		return fmt.Errorf("group %q: %w", g.Name, err)
	}
	for i, r := range g.Rules {
		if err := l.Rule(r.Labels, r.Annotations); err != nil {
			return fmt.Errorf("group %q, rule %d, %q: %w", g.Name, i+1, r.Alert, err)
		}
	}
	return nil
}

// Parse is upstream's rulefmt.Parse for files whose templates are within the limits.
func (l Limits) Parse(content []byte, ignoreUnknown bool, scheme model.ValidationScheme, p parser.Parser, logger *slog.Logger) (*rulefmt.RuleGroups, []error) {
	var groups rulefmt.RuleGroups
	// Upstream reports what cannot be decoded; the rest is checked nevertheless.
	_ = yaml.NewDecoder(bytes.NewReader(content)).Decode(&groups)
	var errs []error
	for _, g := range groups.Groups {
		if err := l.Group(g); err != nil {
			errs = append(errs, err)
		}
	}
	if errs != nil {
		return nil, errs
	}
	return rulefmt.Parse(content, ignoreUnknown, scheme, p, logger)
}

// ParseFile is upstream's rulefmt.ParseFile for files whose templates are within the limits.
func (l Limits) ParseFile(path string, ignoreUnknown bool, scheme model.ValidationScheme, p parser.Parser, logger *slog.Logger) (*rulefmt.RuleGroups, []error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("%s: %w", path, err)}
	}
	groups, errs := l.Parse(content, ignoreUnknown, scheme, p, logger)
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", path, err)
	}
	return groups, errs
}

// Load returns the groups of rule files, in the order of the files, as a manager of upstream's with
// the options loads them. Their templates are within the limits.
func (l Limits) Load(o *rules.ManagerOptions, interval time.Duration, external labels.Labels, url string, ignoreUnknown bool, paths []string) ([]*rules.Group, []error) {
	from := &loader{l, o, map[string]int{}}
	o.GroupLoader = from
	loaded, errs := rules.NewManager(o).LoadGroups(interval, external, url, nil, ignoreUnknown, paths...)
	if errs != nil {
		return nil, errs
	}
	return slices.SortedFunc(maps.Values(loaded), func(a, b *rules.Group) int {
		return cmp.Compare(from.place[rules.GroupKey(a.File(), a.Name())], from.place[rules.GroupKey(b.File(), b.Name())])
	}), nil
}

// loader reads rule files and remembers the order of their groups. It implements rules.GroupLoader.
type loader struct {
	limits Limits
	of     *rules.ManagerOptions
	place  map[string]int // by rules.GroupKey
}

// Load implements rules.GroupLoader.
func (l *loader) Load(path string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	out, errs := l.limits.ParseFile(path, ignoreUnknown, scheme, l.of.Parser, l.of.Logger)
	if errs == nil {
		for _, g := range out.Groups {
			l.place[rules.GroupKey(path, g.Name)] = len(l.place)
		}
	}
	return out, errs
}

// Parse implements rules.GroupLoader.
func (l *loader) Parse(expr string) (parser.Expr, error) { return l.of.Parser.ParseExpr(expr) }

// deeper reports whether the blocks and parentheses of a text nest deeper than limit. It finds the
// actions as the lexer of text/template does, up to the first text that the lexer refuses. A chain
// of else if is as deep as it is long, and one end closes it.
func deeper(text string, limit int) bool {
	var open []int // levels of each open block
	depth := 0
	for {
		_, action, found := strings.Cut(text, "{{")
		if !found {
			return false
		}
		if c := strings.TrimLeft(strings.TrimPrefix(action, "-"), " \t\r\n"); strings.HasPrefix(c, "/*") {
			if _, text, found = strings.Cut(c, "*/"); !found {
				return false
			}
			continue
		}
		i, inside, previous := 0, 0, ""
		for words := 0; i < len(action) && (inside > 0 || !strings.HasPrefix(action[i:], "}}")); {
			c, from := action[i], i
			i++
			switch {
			case c == '"' || c == '\'' || c == '`':
				for ; i < len(action) && action[i] != c; i++ {
					if action[i] == '\\' && c != '`' {
						i++
					}
				}
				i++
			case c == '(':
				inside++
			case c == ')':
				inside--
			case isWord(c) || c == '.' || c == '$': // of a field or variable, which may be named like a keyword
				for i < len(action) && isWord(action[i]) {
					i++
				}
				word := action[from:i]
				switch words++; {
				case words == 1 && (word == "if" || word == "range" || word == "with" || word == "block" || word == "define"):
					open, depth = append(open, 1), depth+1
				case words == 2 && previous == "else" && (word == "if" || word == "with") && len(open) > 0:
					open[len(open)-1]++
					depth++
				case words == 1 && word == "end" && len(open) > 0:
					depth -= open[len(open)-1]
					open = open[:len(open)-1]
				}
				previous = word
			}
			if depth+inside > limit {
				return true
			}
		}
		if i >= len(action) {
			return false
		}
		text = action[i+2:]
	}
}

// isWord reports whether a byte is of a name, keyword or number.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
