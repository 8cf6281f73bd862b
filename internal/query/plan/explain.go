package plan

import (
	"fmt"
	"strings"
)

// String formats the plan as a tree: the expression that the engine evaluates, the operations of
// each pushed subtree, and why other parts were not pushed.
func (p *Plan) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "engine: %s\n", p.Expr)
	for _, s := range p.Pushed {
		sb.WriteString(s.String())
	}
	for _, k := range p.Kept {
		fmt.Fprintf(&sb, "kept: %s\n", k)
	}
	return sb.String()
}

// String formats the operations of the subtree as a tree.
func (p *Pushed) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "pushed %s: %d series on %s\n", p.Name, len(p.Labels), p.Grid)
	writeTree(&sb, p.Root, 1)
	return sb.String()
}

func writeTree(sb *strings.Builder, n Node, depth int) {
	if _, ok := n.(*constNode); ok {
		return // the node that uses it formats it
	}
	sb.WriteString(strings.Repeat("  ", depth))
	sb.WriteString(n.String())
	if l, ok := n.(*Leaf); ok {
		fmt.Fprintf(sb, ": %d series, %d samples", len(l.Resolution.Series), l.Resolution.Rows)
	} else if !n.Shape().Scalar {
		fmt.Fprintf(sb, ": %d series", len(n.Shape().Labels))
	}
	sb.WriteByte('\n')
	for _, c := range n.Children() {
		writeTree(sb, c, depth+1)
	}
}
