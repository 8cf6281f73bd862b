package ruletemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// instrumented returns a template that does what another one does, but counts what it does: by the
// functions of a budget. What it prints is measured and left out. The text has passed
// Limits.Check.
//
//	{{if .}}hello{{printf "%d" $x}}{{end}}
//	{{__enter 4}}{{if . | __made}}{{__text 5}}{{printf "%d" ($x | __read) | __made | __printed}}{{end}}{{__leave}}
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
