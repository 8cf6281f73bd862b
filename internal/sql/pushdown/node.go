package pushdown

import (
	"encoding/json"
	"strconv"
	"time"
)

// node is an operator of a plan, or an expression, as DuckDB serializes LogicalOperator and
// Expression. Fields have different types in different classes: what is not of the asked type is
// not there.
type node map[string]any

// text returns a field that is a text.
func (n node) text(field string) string {
	s, _ := n[field].(string)
	return s
}

// flag returns a field that is a boolean.
func (n node) flag(field string) bool {
	b, _ := n[field].(bool)
	return b
}

// list returns a field that is an array.
func (n node) list(field string) []any {
	l, _ := n[field].([]any)
	return l
}

// node returns a field that is an object.
func (n node) node(field string) node {
	m, _ := n[field].(map[string]any)
	return m
}

// nodes returns the elements of a field that is an array of objects. An element that is none is
// nil.
func (n node) nodes(field string) []node {
	l := n.list(field)
	out := make([]node, len(l))
	for i := range l {
		m, _ := l[i].(map[string]any)
		out[i] = m
	}
	return out
}

// number returns a field that is an integer.
func (n node) number(field string) (int64, bool) { return integer(n[field]) }

func integer(x any) (int64, bool) {
	v, ok := x.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := v.Int64()
	return i, err == nil
}

// argument returns a value as a text, nil if it is NULL or of a type that is not read.
func (n node) argument() *string {
	var out string
	switch v := n["value"]; n.node("type").text("id") {
	case "VARCHAR":
		s, ok := v.(string)
		if !ok {
			return nil
		}
		out = s
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE":
		us, ok := integer(v)
		if !ok {
			return nil
		}
		out = time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
	case "INTEGER", "BIGINT":
		i, ok := integer(v)
		if !ok {
			return nil
		}
		out = strconv.FormatInt(i, 10)
	default:
		return nil
	}
	return &out
}

// constant returns the value of a constant of a type.
func (n node) constant(typeID string) (any, bool) {
	v := n.node("value")
	if n.text("expression_class") != "BOUND_CONSTANT" || v == nil || v.flag("is_null") || v.node("type").text("id") != typeID {
		return nil, false
	}
	return v["value"], true
}
