package plan

// nodesOf returns a node and those below it, each once and before its children, in the order of the
// query's text.
func nodesOf(n Node) []Node {
	all := make([]Node, 0, 8)
	visit(n, func(n Node) bool {
		all = append(all, n)
		return true
	})
	return all
}

// leavesOf returns the leaves below a node, each once, in the order of the query's text.
func leavesOf(n Node) []*Leaf { return leavesAmong(nodesOf(n)) }

// leavesAmong returns the leaves among nodes.
func leavesAmong(nodes []Node) (out []*Leaf) {
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
	seen := map[Node]bool{}
	var walk func(Node)
	walk = func(n Node) {
		if seen[n] {
			return
		}
		if seen[n] = true; f(n) {
			for _, c := range n.Children() {
				walk(c)
			}
		}
	}
	walk(n)
}
