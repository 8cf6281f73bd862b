package ruletemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"text/template/parse"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/template"

	"github.com/promlake/promlake/internal/base/telemetry"
)

// Guard bounds what the templates of alerting rules do. Upstream's rules ask for the result of
// their expression first and expand their templates afterwards, which cannot be ended. So with that
// result the guard tries the templates within the limits. If one exceeds a limit, the query fails,
// and so does the rule alone. Otherwise upstream's expansion does the same, because it gets the
// same answers to the queries of templates: those that the guard has got.
//
// It is safe for concurrent use.
type Guard struct {
	limits  Limits
	refused *prometheus.CounterVec
}

// NewGuard returns a guard, which counts in reg (nil: nowhere):
//
//	promlake_rule_templates_limited_total{limit}   evaluations of rules that failed by a limit
func NewGuard(l Limits, reg prometheus.Registerer) *Guard {
	return &Guard{l.filled(), telemetry.Metrics{Registerer: reg, Prefix: "promlake_"}.CountersOf("rule_templates_limited_total",
		"Evaluations of alerting rules that failed because a template exceeded a limit: bytes and depth of its text, text that it makes, steps.", "limit", Names()...)}
}

// Evaluation is one evaluation of rules, with what their templates can see.
type Evaluation struct {
	Rules          []rules.Rule
	At             time.Time // passed to rules.Rule.Eval
	ExternalLabels labels.Labels
	Link           string   // the external URL that the rules were made with
	URL            *url.URL // the external URL that is passed to rules.Rule.Eval

	mu      sync.Mutex
	answers map[context.Context]map[string]*answer // of rules under way: upstream makes a context for each
}

type evaluationKey struct{}

// Begin returns the context with which an evaluation has to call rules or groups of upstream.
func Begin(ctx context.Context, e *Evaluation) context.Context {
	e.answers = map[context.Context]map[string]*answer{}
	return context.WithValue(ctx, evaluationKey{}, e)
}

// Around returns the function by which rules and their templates query.
func (g *Guard) Around(query rules.QueryFunc) rules.QueryFunc {
	return func(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
		e, _ := ctx.Value(evaluationKey{}).(*Evaluation)
		detail := rules.FromOriginContext(ctx)
		if e == nil || detail.Kind != rules.KindAlerting {
			return query(ctx, expr, t)
		}
		e.mu.Lock()
		known, tried := e.answers[ctx]
		e.mu.Unlock()
		if tried { // only the goroutine that evaluates the rule has this context
			a := known[expr]
			if a == nil {
				return nil, fmt.Errorf("a template asks for %.100q, which it did not when it was tried", expr)
			}
			if a.uses--; a.uses == 0 {
				delete(known, expr)
			}
			return copied(a.vector), a.err
		}
		v, err := query(ctx, expr, t)
		if err != nil || len(v) == 0 {
			return v, err
		}
		b := &budget{Limits: g.limits, ctx: ctx, query: query, answers: map[string]*answer{}}
		for _, r := range e.Rules {
			a, ok := r.(*rules.AlertingRule)
			if !ok || a.Name() != detail.Name || a.Query().String() != detail.Query || !labels.Equal(a.Labels(), detail.Labels) {
				continue
			}
			if err := b.try(a, e, v); err != nil {
				if limit, ok := errors.AsType[*Error](err); ok {
					g.refused.WithLabelValues(limit.Limit).Inc()
				}
				return nil, fmt.Errorf("expand the templates of alert %q: %w", a.Name(), err)
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.answers[ctx] = b.answers
		return v, nil
	}
}

// definitions are what upstream puts before each template.
const definitions = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"

// try expands the templates of a rule for the samples of its expression. Errors of a template
// itself are none here: upstream puts them into the alert.
func (b *budget) try(rule *rules.AlertingRule, e *Evaluation, v promql.Vector) error {
	name := "__alert_" + rule.Name()
	var texts []string
	var invalid error
	for _, ls := range []labels.Labels{rule.Labels(), rule.Annotations()} {
		ls.Range(func(l labels.Label) {
			if err := b.Check(l.Value); err != nil {
				invalid = errors.Join(invalid, fmt.Errorf("%q: %w", l.Name, err))
			} else if strings.Contains(l.Value, "{{") {
				if text, err := instrumented(name, definitions+l.Value); err == nil {
					texts = append(texts, text)
				}
			}
		})
	}
	if invalid != nil || len(texts) == 0 {
		return invalid
	}
	funcs, external := b.funcs(), e.ExternalLabels.Map()
	for _, s := range copied(v) {
		data := template.AlertTemplateData(s.Metric.Map(), external, e.Link, s)
		for _, text := range texts {
			b.text, b.depth = 0, 0
			x := template.NewTemplateExpander(b.ctx, text, name, data, model.Time(timestamp.FromTime(e.At)), b.ask, e.URL, nil)
			x.Funcs(funcs)
			_, _ = x.Expand()
			if b.err != nil {
				return b.err
			}
		}
	}
	return nil
}

// instrumented returns a template that does what another one does, but counts what it does: by the
// functions of a budget. What it prints is measured and left out. The text has passed
// Limits.Check.
//
//	{{if .}}hello{{printf "%d" $x}}{{end}}
//
// becomes, without the line break,
//
//	{{__enter 4}}{{if . | __made}}{{__text 5}}
//	{{printf "%d" ($x | __read) | __made | __printed}}{{end}}{{__leave}}
func instrumented(name, text string) (string, error) {
	root := parse.New(name)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, "", "", trees); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, defined := range slices.Sorted(maps.Keys(trees)) {
		if t := trees[defined]; t != root {
			fmt.Fprintf(&out, "{{define %q}}%s{{end}}", defined, counted(t))
		}
	}
	out.WriteString(counted(root))
	return out.String(), nil
}

// counted returns the body of a template, of which each call counts.
func counted(t *parse.Tree) string {
	i := &instrumenter{}
	n := i.list(t.Root)
	return fmt.Sprintf("{{__enter %d}}%s{{__leave}}", n, t.Root)
}

// instrumenter changes the trees of one template.
type instrumenter struct{ variables int }

func text(format string, args ...any) *parse.TextNode {
	return &parse.TextNode{NodeType: parse.NodeText, Text: fmt.Appendf(nil, format, args...)}
}

// list changes a list of nodes and returns the steps of its nodes, without those that loops repeat.
func (i *instrumenter) list(l *parse.ListNode) (steps int) {
	if l == nil {
		return 0
	}
	steps = len(l.Nodes)
	for at, node := range l.Nodes {
		switch n := node.(type) {
		case *parse.TextNode:
			l.Nodes[at] = text("{{__text %d}}", len(n.Text))
		case *parse.ActionNode:
			steps += i.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, function("__printed"))
			}
		case *parse.TemplateNode:
			steps += i.pipe(n.Pipe)
		case *parse.IfNode:
			steps += i.pipe(n.Pipe) + i.list(n.List) + i.list(n.ElseList)
		case *parse.WithNode:
			steps += i.pipe(n.Pipe) + i.list(n.List) + i.list(n.ElseList)
		case *parse.RangeNode:
			steps += i.pipe(n.Pipe)
			inside := 1 + i.list(n.List)
			n.List.Nodes = append([]parse.Node{text("{{__steps %d}}", inside)}, n.List.Nodes...)
			steps += i.list(n.ElseList)
		}
	}
	return steps
}

// variablesPerStep: a variable is found by a walk through all variables of the template.
const variablesPerStep = 64

// pipe changes a pipeline and returns the steps of its commands.
func (i *instrumenter) pipe(p *parse.PipeNode) (steps int) {
	if p == nil {
		return 0
	}
	i.variables += len(p.Decl)
	cmds := make([]*parse.CommandNode, 0, 2*len(p.Cmds)+1)
	for _, c := range p.Cmds {
		for at, arg := range c.Args {
			steps += 1 + i.variables/variablesPerStep
			switch a := arg.(type) {
			case *parse.PipeNode:
				steps += i.pipe(a)
			case *parse.ChainNode:
				if inner, ok := a.Node.(*parse.PipeNode); ok {
					steps += i.pipe(inner)
				}
			case *parse.VariableNode, *parse.FieldNode, *parse.DotNode:
				if at > 0 {
					c.Args[at] = &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{
						{NodeType: parse.NodeCommand, Args: []parse.Node{a}}, function("__read"),
					}}
				}
			}
		}
		cmds = append(cmds, c, function("__made"))
	}
	p.Cmds = cmds
	return steps
}

func function(name string) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{parse.NewIdentifier(name)}}
}
