package statement

import (
	"encoding/json"
	"fmt"
	"math/big"
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
// has neither. Each parameter needs a value, and
// each value a parameter. It checks what depends on the values.
func (s *Statement) Bound(p Parameters) ([]byte, error) {
	given := len(p.positional) + len(p.named)
	if given != s.parameters {
		return nil, refuse("the statement has %d parameters, and params has %d values", s.parameters, given)
	}
	tree, err := p.replace(s.tree)
	if err != nil {
		return nil, err
	}
	cast := castTexts(tree, s.promql)
	if err := patterns(tree); err != nil || given == 0 && !cast {
		return nil, err
	}
	tree.(map[string]any)["named_param_map"] = []any{}
	out, err := json.Marshal(map[string]any{"error": false, "statements": []any{tree}})
	if err != nil {
		return nil, fmt.Errorf("write the statement's tree: %w", err)
	}
	return out, nil
}

func (p Parameters) replace(x any) (any, error) {
	switch x := x.(type) {
	case map[string]any:
		if x["class"] == "PARAMETER" {
			return p.constant(x)
		}
		for k, v := range x {
			y, err := p.replace(v)
			if err != nil {
				return nil, err
			}
			x[k] = y
		}
	case []any:
		for i, v := range x {
			y, err := p.replace(v)
			if err != nil {
				return nil, err
			}
			x[i] = y
		}
	}
	return x, nil
}

// constant returns the node of a parameter's value.
func (p Parameters) constant(parameter map[string]any) (any, error) {
	name := text(parameter["identifier"])
	var v any
	if i, err := strconv.Atoi(name); err == nil && i >= 1 && i <= len(p.positional) {
		v = p.positional[i-1]
	} else if named, ok := p.named[strings.ToLower(name)]; ok {
		v = named
	} else {
		return nil, refuse("params has no value for the parameter $%s", name)
	}
	value := map[string]any{"is_null": false}
	switch v := v.(type) {
	case []any:
		return list(name, v, parameter["query_location"])
	case nil:
		value["type"], value["is_null"] = kind("NULL"), true
	case bool:
		value["type"], value["value"] = kind("BOOLEAN"), v
	case string:
		if strings.ContainsRune(v, 0) {
			return nil, refuse("the value of the parameter $%s has a NUL character", name)
		}
		value["type"], value["value"] = kind("VARCHAR"), v
	case json.Number:
		if i, ok := new(big.Int).SetString(v.String(), 10); ok && i.IsInt64() {
			value["type"], value["value"] = kind("BIGINT"), v
			break
		}
		f, err := v.Float64()
		if err != nil {
			return nil, refuse("the value %s of the parameter $%s is not a number of 64 bits", v, name)
		}
		value["type"], value["value"] = kind("DOUBLE"), f
	default:
		return nil, refuse("the value of the parameter $%s is not a string, number, boolean or null, nor a list", name)
	}
	constant := constantNode(value, parameter["query_location"])
	if value["type"].(map[string]any)["id"] != "DOUBLE" {
		return constant, nil
	}
	return castNode(constant, "DOUBLE"), nil // as text, a DOUBLE is a DECIMAL
}

// list returns the node of a list: its JSON, which DuckDB parses, so that a long list makes one node.
func list(name string, items []any, location any) (any, error) {
	item := ""
	for _, x := range items {
		found := ""
		switch x := x.(type) {
		case nil:
			continue
		case bool:
			found = "BOOLEAN"
		case string:
			if strings.ContainsRune(x, 0) {
				return nil, refuse("the value of the parameter $%s has a NUL character", name)
			}
			found = "VARCHAR"
		case json.Number:
			if i, ok := new(big.Int).SetString(x.String(), 10); ok && i.IsInt64() {
				found = "BIGINT"
			} else if _, err := x.Float64(); err == nil {
				found = "DOUBLE"
			} else {
				return nil, refuse("the value %s of the parameter $%s is not a number of 64 bits", x, name)
			}
		default:
			return nil, refuse("the list of the parameter $%s has a value that is not a string, number, boolean or null", name)
		}
		switch {
		case item == "" || item == "BIGINT" && found == "DOUBLE":
			item = found
		case item != found && (item != "DOUBLE" || found != "BIGINT"):
			return nil, refuse("the list of the parameter $%s has values of the types %s and %s", name, item, found)
		}
	}
	if item == "" {
		item = "VARCHAR"
	}
	body, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("write the list of the parameter $%s: %w", name, err)
	}
	varchar := func(s string) any {
		return constantNode(map[string]any{"type": kind("VARCHAR"), "is_null": false, "value": s}, location)
	}
	return map[string]any{
		"class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": location,
		"function_name": "from_json", "schema": "", "catalog": "", "children": []any{varchar(string(body)), varchar(`["` + item + `"]`)},
		"filter": nil, "order_bys": map[string]any{"type": "ORDER_MODIFIER", "orders": []any{}},
		"distinct": false, "is_operator": false, "export_state": false,
	}, nil
}

func constantNode(value map[string]any, location any) map[string]any {
	return map[string]any{"class": "CONSTANT", "type": "VALUE_CONSTANT", "alias": "", "query_location": location, "value": value}
}

func kind(id string) map[string]any { return map[string]any{"id": id, "type_info": nil} }
