package ruletemplate

import (
	"regexp"
	"text/template/parse"
)

// growing are the functions of simple templates, with how many times their arguments their results
// are at most; numbers and times have less than scalar bytes.
var growing = map[string]int{
	"humanize": 1, "humanize1024": 1, "humanizeDuration": 1, "humanizePercentage": 1, "humanizeTimestamp": 1, "parseDuration": 1, "now": 1,
	"title": 3, "toUpper": 3, "toLower": 3, "urlQueryEscape": 3, "stripPort": 1, "stripDomain": 1, "externalURL": 1, "pathPrefix": 1,
	"eq": 1, "ne": 1, "lt": 1, "le": 1, "gt": 1, "ge": 1, "and": 1, "or": 1, "not": 1, "index": 1, "len": 1,
}

// format is one of printf that pads little, and prints each argument once.
var format = regexp.MustCompile(`^([^%*]|%[-+]?[0-9]?(\.[0-9])?[vsdfgeqt%])*$`)

// growth returns how many times as long as all that it can read the text of a template is at most.
// It is false unless that is sure at a glance, for samples that are numbers: the template has
// neither loops nor variables of its own, and calls neither templates nor methods.
func growth(l *parse.ListNode) (times int, ok bool) {
	if l == nil {
		return 0, true
	}
	for _, node := range l.Nodes {
		var pipe *parse.PipeNode
		var lists []*parse.ListNode
		switch n := node.(type) {
		case *parse.TextNode:
			continue
		case *parse.ActionNode:
			pipe = n.Pipe
		case *parse.IfNode:
			pipe, lists = n.Pipe, []*parse.ListNode{n.List, n.ElseList}
		default:
			return 0, false
		}
		if len(pipe.Decl) > 0 || len(pipe.Cmds) > 3 {
			return 0, false
		}
		made := 1
		for _, c := range pipe.Cmds {
			name, called := c.Args[0].(*parse.IdentifierNode)
			if !called && len(c.Args) > 1 { // of a method
				return 0, false
			}
			for _, arg := range c.Args[1:] {
				switch arg.(type) {
				case *parse.VariableNode, *parse.FieldNode, *parse.StringNode, *parse.NumberNode:
				default:
					return 0, false
				}
			}
			switch {
			case !called:
				if _, of := c.Args[0].(*parse.ChainNode); of || c.Args[0].Type() == parse.NodePipe {
					return 0, false
				}
			case name.Ident == "printf" && len(c.Args) > 1:
				f, literal := c.Args[1].(*parse.StringNode)
				if !literal || !format.MatchString(f.Text) {
					return 0, false
				}
				made *= quoted * (1 + len(c.Args)) // more arguments than verbs are printed, too
			case growing[name.Ident] == 0:
				return 0, false
			default:
				made *= growing[name.Ident]
			}
		}
		times += made
		for _, below := range lists {
			more, ok := growth(below)
			if !ok {
				return 0, false
			}
			times += more
		}
	}
	return times, true
}
