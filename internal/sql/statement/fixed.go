package statement

import (
	"maps"
	"slices"
)

var (
	clocks       = []string{"current_timestamp", "get_current_timestamp", "now"}
	fixedColumns = []string{"labels", "metric", "ts", "value"}
	// fixedFunctions have, as operators do, one value of a row at any time and in any process.
	fixedFunctions = []string{
		"abs", "ceil", "concat", "contains", "date_part", "date_trunc", "ends_with", "epoch", "epoch_ms", "floor", "isfinite", "isinf", "isnan", "length", "lower",
		"prefix", "regexp_full_match", "regexp_matches", "round", "sqrt", "starts_with", "substring", "suffix", "time_bucket",
		"to_days", "to_hours", "to_milliseconds", "to_minutes", "to_months", "to_seconds", "to_weeks", "to_years", "trunc", "upper",
	}
)

// Over returns a function for the tree of the statement, which Check admits, as
// json_deserialize_sql takes it: over another table in place of samples or promql, and with a
// constant time in place of now(). It returns nil if the statement reads something else, or has a
// part that may depend on the time or on the process. The statement itself is of no use then.
func (s *Statement) Over(table string) func(now string) ([]byte, error) {
	if s.Explain || len(s.tree.Node("node").Node("cte_map").List("map")) > 0 {
		return nil
	}
	tables, nows := 0, []Node(nil)
	for n := range s.tree.All() {
		ok, name := true, calledOf(n)
		for _, e := range n.Nodes("select_list") { // columns of the result have the names of their texts
			for part := range e.All() {
				ok = ok && !slices.Contains(clocks, calledOf(part))
			}
		}
		switch {
		case n["type"] == "BASE_TABLE" || n["type"] == "TABLE_FUNCTION":
			name = lower(n["table_name"]) + calledOf(n.Node("function"))
			tables++
			ok = tables == 1 && (name == "samples" || name == "promql" && n["with_ordinality"] == "WITHOUT_ORDINALITY")
			if n["alias"] == "" {
				n["alias"] = name
			}
			delete(n, "function")
			maps.Copy(n, Node{"type": "BASE_TABLE", "table_name": table, "schema_name": "", "catalog_name": "", "at_clause": nil})
		case slices.Contains(clocks, name):
			nows = append(nows, n)
		case n["class"] == "COLUMN_REF":
			ok = slices.Contains(fixedColumns, name)
		case n["class"] == "FUNCTION":
			ok = n.Flag("is_operator") || slices.Contains(fixedFunctions, name)
		case n["class"] == "CONSTANT": // a DOUBLE becomes a DECIMAL, as in the text of bound parameters
			ok = s.parameters > 0 || n.Node("value").Node("type").Text("id") != "DOUBLE"
		}
		if !ok {
			return nil
		}
	}
	if tables == 0 {
		return nil
	}
	return func(now string) ([]byte, error) {
		for _, n := range nows {
			fixed := castNode(constantNode("VARCHAR", now, n["query_location"]), "TIMESTAMP WITH TIME ZONE")
			clear(n)
			maps.Copy(n, fixed)
		}
		return treeOf(s.tree)
	}
}

// calledOf returns the name of a function, or of a column.
func calledOf(n Node) string {
	if names := n.List("column_names"); len(names) > 0 {
		return lower(names[len(names)-1])
	}
	return lower(n["function_name"])
}
