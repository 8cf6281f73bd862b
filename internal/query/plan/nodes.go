package plan

// nodesOf returns a node and those below it, each once and before its children, in the order of the
// query's text.
func nodesOf(root Node) []Node {
	var all []Node
	seen := map[Node]bool{}
	var walk func(Node)
	walk = func(n Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		all = append(all, n)
		for _, c := range n.Children() {
			walk(c)
		}
	}
	walk(root)
	return all
}

// leavesAmong returns the leaves among nodes.
func leavesAmong(nodes []Node) (out []*Leaf) {
	for _, n := range nodes {
		if l, ok := n.(*Leaf); ok {
			out = append(out, l)
		}
	}
	return out
}
