package statement

// Aggregate is a range function of PromQL as an aggregate: how many parameters it has before the
// sample's time, and after the window. A window is its two bounds or, with OVER, its length.
type Aggregate struct {
	Before, After int
}

// types returns those of n arguments, nil if no form has so many.
func (a Aggregate) types(n int) (out []string) {
	for range a.Before {
		out = append(out, "DOUBLE")
	}
	const moment = "TIMESTAMP WITH TIME ZONE"
	out = append(out, moment, "DOUBLE")
	if n == a.sliding() {
		out = append(out, "INTERVAL")
	} else {
		out = append(out, moment, moment)
	}
	for range a.After {
		out = append(out, "DOUBLE")
	}
	if len(out) != n {
		return nil
	}
	return out
}

// sliding is the number of arguments of the form for OVER: ts, value and range beside the parameters.
func (a Aggregate) sliding() int { return 3 + a.Before + a.After }

// castTexts casts constant texts among the arguments of aggregates, as '-inf' and '5 minutes': DuckDB
// does not for aggregates of the C API. It reports whether there are any.
func castTexts(x any, aggregates map[string]Aggregate) (cast bool) {
	switch x := x.(type) {
	case map[string]any:
		for _, v := range x {
			cast = castTexts(v, aggregates) || cast
		}
		a, ok := aggregates[lower(x["function_name"])]
		children, _ := x["children"].([]any)
		if !ok {
			return cast
		}
		for i, t := range a.types(len(children)) {
			if c, ok := children[i].(map[string]any); ok && isText(c) {
				children[i], cast = castNode(c, t), true
			}
		}
	case []any:
		for _, v := range x {
			cast = castTexts(v, aggregates) || cast
		}
	}
	return cast
}

// isText reports whether a node is a constant text.
func isText(node map[string]any) bool {
	value, _ := node["value"].(map[string]any)
	kind, _ := value["type"].(map[string]any)
	return node["class"] == "CONSTANT" && kind["id"] == "VARCHAR"
}

func castNode(child map[string]any, to string) map[string]any {
	return map[string]any{
		"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": child["query_location"],
		"child": child, "cast_type": kind(to), "try_cast": false,
	}
}
