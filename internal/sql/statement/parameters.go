package statement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Parameters are the values of $1, $2, … or ?, or of $name: JSON scalars, and arrays of scalars of
// one kind.
type Parameters struct {
	positional []any
	named      map[string]any
}

// ParseParameters reads a JSON array, or an object for named parameters. Nothing, and null, are no
// parameters.
func ParseParameters(raw json.RawMessage) (p Parameters, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return p, nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return p, refuse("params is not JSON: %v", err)
	}
	switch x := x.(type) {
	case []any:
		p.positional = x
	case map[string]any:
		p.named = map[string]any{}
		for k, v := range x {
			p.named[strings.ToLower(k)] = v
		}
	default:
		return p, refuse("params is not a JSON array of values for $1, $2, …, nor an object of values for $name")
	}
	return p, nil
}

// Bound returns the tree of the statement with constants in place of its parameters, and with casts
// of texts that are arguments of aggregates, as json_deserialize_sql takes it; nil if the statement
// has neither. Each parameter needs a value, and each value a parameter. It checks what depends on
// the values.
func (s *Statement) Bound(p Parameters) ([]byte, error) {
	given := len(p.positional) + len(p.named)
	if given != s.parameters {
		return nil, refuse("the statement has %d parameters, and params has %d values", s.parameters, given)
	}
	for n := range s.tree.All() {
		if n["class"] == "PARAMETER" {
			value, err := p.value(n.Text("identifier"), n["query_location"])
			if err != nil {
				return nil, err
			}
			clear(n)
			maps.Copy(n, value)
		}
	}
	cast := castTexts(s.tree, s.promql)
	if err := patterns(s.tree); err != nil || given == 0 && !cast {
		return nil, err
	}
	s.tree["named_param_map"] = []any{}
	return treeOf(s.tree)
}

// treeOf returns a tree as json_deserialize_sql takes it.
func treeOf(tree Node) ([]byte, error) {
	out, err := json.Marshal(map[string]any{"error": false, "statements": []any{tree}})
	if err != nil {
		return nil, fmt.Errorf("write the statement's tree: %w", err)
	}
	return out, nil
}

// value returns the node of the value of a parameter at a location.
func (p Parameters) value(name string, location any) (Node, error) {
	var v any
	if i, err := strconv.Atoi(name); err == nil && i >= 1 && i <= len(p.positional) {
		v = p.positional[i-1]
	} else if named, ok := p.named[strings.ToLower(name)]; ok {
		v = named
	} else {
		return nil, refuse("params has no value for the parameter $%s", name)
	}
	if items, ok := v.([]any); ok {
		return list(name, items, location)
	}
	id, err := typeOf(name, v)
	switch {
	case err != nil:
		return nil, err
	case id == "":
		return nil, refuse("the value of the parameter $%s is not a string, number, boolean or null, nor a list", name)
	case id == "DOUBLE":
		v, err = v.(json.Number).Float64()
		return castNode(constantNode(id, v, location), id), err // as text, a DOUBLE is a DECIMAL
	}
	return constantNode(id, v, location), nil
}

// typeOf returns the type of a scalar value of a parameter, "" for other values.
func typeOf(name string, v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "NULL", nil
	case bool:
		return "BOOLEAN", nil
	case string:
		if strings.ContainsRune(v, 0) {
			return "", refuse("the value of the parameter $%s has a NUL character", name)
		}
		return "VARCHAR", nil
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "BIGINT", nil
		}
		if _, err := v.Float64(); err != nil {
			return "", refuse("the value %s of the parameter $%s is not a number of 64 bits", v, name)
		}
		return "DOUBLE", nil
	}
	return "", nil
}

// list returns the node of a list: its JSON, which DuckDB parses, so that a long list makes one
// node.
func list(name string, items []any, location any) (Node, error) {
	item := ""
	for _, x := range items {
		found, err := typeOf(name, x)
		switch {
		case err != nil:
			return nil, err
		case found == "":
			return nil, refuse("the list of the parameter $%s has a value that is not a string, number, boolean or null", name)
		case found == "NULL":
		case item == "" || item == "BIGINT" && found == "DOUBLE":
			item = found
		case item != found && (item != "DOUBLE" || found != "BIGINT"):
			return nil, refuse("the list of the parameter $%s has values of the types %s and %s", name, item, found)
		}
	}
	body, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("write the list of the parameter $%s: %w", name, err)
	}
	structure := `["` + cmp.Or(item, "VARCHAR") + `"]`
	return Node{
		"class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": location,
		"function_name": "from_json", "schema": "", "catalog": "",
		"children": []any{constantNode("VARCHAR", string(body), location), constantNode("VARCHAR", structure, location)},
		"filter":   nil, "order_bys": map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}},
		"distinct": false, "is_operator": false, "export_state": false,
	}, nil
}

// constantNode returns the node of a constant; nil is NULL.
func constantNode(id string, v, location any) map[string]any {
	value := map[string]any{"type": kind(id), "is_null": v == nil}
	if v != nil {
		value["value"] = v
	}
	return map[string]any{"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": location, "value": value}
}

func kind(id string) map[string]any { return map[string]any{"id": id, "type_info": nil} }
