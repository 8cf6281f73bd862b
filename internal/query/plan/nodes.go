package plan

import "slices"

// nodesOf returns a node and those below it, each once and before its children, in the order of the
// query's text.
func nodesOf(n Node) []Node {
	l := listing{all: make([]Node, 0, 8)}
	l.add(n)
	return l.all
}

// listing is a list of nodes.
type listing struct {
	all  []Node
	seen map[Node]struct{} // all, if they are many
}

// manyNodes is the number of nodes that are searched one by one.
const manyNodes = 32

func (l *listing) add(n Node) {
	if l.has(n) {
		return
	}
	if l.all = append(l.all, n); l.seen != nil {
		l.seen[n] = struct{}{}
	}
	for _, c := range n.Children() {
		l.add(c)
	}
}

func (l *listing) has(n Node) bool {
	if len(l.all) < manyNodes {
		return slices.Contains(l.all, n)
	}
	if l.seen == nil {
		l.seen = make(map[Node]struct{}, 2*manyNodes)
		for _, n := range l.all {
			l.seen[n] = struct{}{}
		}
	}
	_, has := l.seen[n]
	return has
}

// leavesOf returns the leaves below a node, each once, in the order of the query's text.
func leavesOf(n Node) []*Leaf { return leavesAmong(nodesOf(n)) }

// leavesAmong returns the leaves among nodes.
func leavesAmong(nodes []Node) []*Leaf {
	count := 0
	for _, n := range nodes {
		if _, ok := n.(*Leaf); ok {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	out := make([]*Leaf, 0, count)
	for _, n := range nodes {
		if l, ok := n.(*Leaf); ok {
			out = append(out, l)
		}
	}
	return out
}

// visit calls f with n and what is below it, each node once and before its children, in the order
// of the query's text. If f returns false, the node's children are left out.
func visit(n Node, f func(Node) bool) {
	v := visiting{f: f}
	v.node(n)
}

// visiting are the nodes that visit has visited.
type visiting struct {
	f    func(Node) bool
	seen memo[Node, struct{}]
}

func (v *visiting) node(n Node) {
	if _, again := v.seen.get(n); again {
		return
	}
	if v.seen.add(n, struct{}{}); v.f(n) {
		for _, c := range n.Children() {
			v.node(c)
		}
	}
}
