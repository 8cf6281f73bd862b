package statement

import (
	"bytes"
	"encoding/json"
	"iter"
	"regexp"
)

// Node is an object in JSON of DuckDB: of the tree of a statement, or of its plan. Fields have
// different types in different classes: a field that is not of the requested type counts as absent.
type Node map[string]any

// Text returns a field that is a text.
func (n Node) Text(field string) string { return text(n[field]) }

// Flag returns a field that is a boolean.
func (n Node) Flag(field string) bool {
	b, _ := n[field].(bool)
	return b
}

// List returns a field that is an array.
func (n Node) List(field string) []any {
	l, _ := n[field].([]any)
	return l
}

// Node returns a field that is an object.
func (n Node) Node(field string) Node { return object(n[field]) }

// Nodes returns the elements of a field that is an array of objects. An element that is none is
// nil.
func (n Node) Nodes(field string) []Node {
	l := n.List(field)
	out := make([]Node, len(l))
	for i := range l {
		out[i] = object(l[i])
	}
	return out
}

// All yields the node and all nodes inside of it, a node before those inside of it, in the order of
// the names of their fields. A loop may change the node at hand.
func (n Node) All() iter.Seq[Node] {
	return func(yield func(Node) bool) { each(map[string]any(n), yield) }
}

// each calls yield with the nodes of a value until yield returns false, which each returns then.
func each(x any, yield func(Node) bool) bool {
	switch x := x.(type) {
	case map[string]any:
		if !yield(x) {
			return false
		}
		for _, name := range sorted(x) {
			if !each(x[name], yield) {
				return false
			}
		}
	case []any:
		for _, v := range x {
			if !each(v, yield) {
				return false
			}
		}
	}
	return true
}

// object returns a value that is an object, nil for others.
func object(x any) Node {
	n, _ := x.(map[string]any)
	return n
}

// notFinite matches a string of JSON, or a number that JSON does not have and DuckDB writes.
var notFinite = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|-?(?:NaN|Infinity)`)

// Decode reads JSON of DuckDB into v. NaN and infinities become null: no condition is read from
// them.
func Decode(answer []byte, v any) error {
	if bytes.Contains(answer, []byte("NaN")) || bytes.Contains(answer, []byte("Infinity")) {
		answer = notFinite.ReplaceAllFunc(answer, func(found []byte) []byte {
			if found[0] == '"' {
				return found
			}
			return []byte("null")
		})
	}
	dec := json.NewDecoder(bytes.NewReader(answer))
	dec.UseNumber()
	return dec.Decode(v)
}
