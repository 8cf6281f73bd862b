package statement

import (
	"maps"
	"slices"
	"strings"
)

// rules are what a statement may name.
type rules struct {
	tables, functions map[string]bool     // lower case
	promql            map[string]Function // lower case
	ctes              map[string]bool     // names that the statement defines, lower case
	parameters        map[string]bool
}

// tableFunctions are DuckDB's table functions that only compute. All others are refused: many read
// files or the state of the process.
var tableFunctions = []string{"generate_series", "json_each", "json_tree", "range", "repeat_row", "unnest"}

// schemaTables are the tables of information_schema that show the tenant's tables.
var schemaTables = []string{"columns", "schemata", "tables"}

// refusedFunctions are DuckDB's scalar functions that are refused, with the reason.
var refusedFunctions = map[string]string{}

// refusedPrefixes are those of families of functions that show or change the state of the process.
var refusedPrefixes = []string{"__internal", "duckdb_", "inet_", "pg_", "pragma_", "promlake_scan"}

// keptFunctions have such a prefix and only compute.
var keptFunctions = []string{"pg_size_pretty", "pg_typeof"}

func init() {
	for reason, names := range map[string][]string{
		"it shows or changes the state of the server": {
			"current_connection_id", "current_query", "current_query_id", "current_setting", "current_transaction_id", "currval", "get_block_size",
			"getenv", "getvariable", "nextval", "parse_duckdb_log_message", "setseed", "stats", "txid_current", "write_log",
		},
		"it handles statements, which are not checked inside of it": {
			"json_deserialize_sql", "json_execute_serialized_sql", "json_serialize_plan", "json_serialize_sql",
		},
		"it occupies the server without computing": {"sleep_ms"},
		"it compares each character of a text with each of the other, and cannot be interrupted": {
			"damerau_levenshtein", "editdist3", "jaro_similarity", "jaro_winkler_similarity", "levenshtein",
		},
		"it makes values of any size from nothing": {
			"array_resize", "bar", "format", "list_resize", "lpad", "printf", "repeat", "rpad",
		},
		"as a list; as a table, FROM range(…), it is": {
			"generate_series", "range",
		},
	} {
		for _, n := range names {
			refusedFunctions[n] = reason
		}
	}
}

// reserved are the beginnings of names of DuckDB's own views: a statement may not define such a
// name, lest the view be meant where the definition does not apply.
var reserved = []string{"duckdb_", "pg_", "pragma_", "sqlite_"}

// collect gathers the names that the statement defines (WITH). Where one of them is not visible, it
// is an unknown table.
func (r *rules) collect(tree Node) {
	for n := range tree.All() {
		for _, entry := range n.Node("cte_map").Nodes("map") {
			r.ctes[lower(entry["key"])] = true
		}
		if kind := lower(n["type"]); kind == "recursive_cte_node" || kind == "cte_node" {
			r.ctes[lower(n["cte_name"])] = true
		}
	}
}

// walk checks a part of the tree. Maps are walked in the order of their keys, so that a statement
// with several faults is always refused for the same one. inFrom: the part is the function of a
// table function.
func (r *rules) walk(x any, inFrom bool) error {
	switch x := x.(type) {
	case map[string]any:
		if err := r.node(x, inFrom); err != nil {
			return err
		}
		for _, k := range sorted(x) {
			if err := r.walk(x[k], k == "function" && x["type"] == "TABLE_FUNCTION"); err != nil {
				return err
			}
		}
	case []any:
		for _, v := range x {
			if err := r.walk(v, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// node checks one node of the tree.
func (r *rules) node(x Node, inFrom bool) error {
	switch x["class"] {
	case "FUNCTION", "WINDOW":
		return r.function(x, inFrom)
	case "PARAMETER":
		r.parameters[lower(x["identifier"])] = true
	}
	switch x["type"] {
	case "BASE_TABLE":
		catalog, schema, name := lower(x["catalog_name"]), lower(x["schema_name"]), lower(x["table_name"])
		if x["at_clause"] != nil {
			return refuse("table %q: AT is not supported; as_of= of the request reads the past", x.Text("table_name"))
		}
		for _, p := range reserved {
			if r.ctes[name] && strings.HasPrefix(name, p) {
				return refuse("table %q: names that begin with %s are DuckDB's own", x.Text("table_name"), p)
			}
		}
		own := catalog == "" || catalog == "memory"
		switch {
		case catalog == "" && schema == "" && r.ctes[name]:
		case own && (schema == "" || schema == "main") && r.tables[name]:
		case (own || catalog == "system") && schema == "information_schema" && slices.Contains(schemaTables, name):
		default:
			return refuse("there is no table %q; there are %s", qualified(x, "table_name"), strings.Join(sorted(r.tables), ", "))
		}
		return nil
	case "TABLE_FUNCTION":
		if name := x.Node("function").Text("function_name"); !r.functions[strings.ToLower(name)] {
			return refuse("the table function %q is not available; there are %s", name, strings.Join(sorted(r.functions), ", "))
		}
		return nil
	case "SHOW_REF":
		switch name := strings.Trim(lower(x["table_name"]), `"`); name {
		case "", "tables", "__show_tables", "__show_tables_expanded", "__show_tables_from_database":
			return nil
		default:
			return refuse("SHOW %s is not available; want SHOW TABLES", strings.TrimPrefix(name, "__show_"))
		}
	}
	return nil
}

func (r *rules) function(x Node, inFrom bool) error {
	name := lower(x["function_name"])
	if catalog, schema := lower(x["catalog"]), lower(x["schema"]); catalog != "" && catalog != "system" || schema != "" && schema != "main" {
		return refuse("the function %q is not available: only functions without a schema are", qualified(x, "function_name"))
	}
	function, known := r.promql[name]
	if strings.HasPrefix(name, "prom_") && (!known || x["schema"] != "" || x["catalog"] != "") {
		return refuse("the function %q is not available; PromQL's functions are %s", qualified(x, "function_name"), strings.Join(sorted(r.promql), ", "))
	}
	if known {
		if err := function.check(name, x); err != nil {
			return err
		}
	}
	if reason, ok := refusedFunctions[name]; ok && !inFrom {
		return refuse("the function %q is not available: %s", name, reason)
	}
	for _, p := range refusedPrefixes {
		if strings.HasPrefix(name, p) && !slices.Contains(keptFunctions, name) && !r.functions[name] {
			return refuse("the function %q is not available: functions that begin with %s show or change the state of the server", name, p)
		}
	}
	return nil
}

func text(x any) string { s, _ := x.(string); return s }

func lower(x any) string { return strings.ToLower(text(x)) }

// qualified returns a name with its catalog and schema.
func qualified(x Node, name string) string {
	var parts []string
	for _, k := range []string{"catalog_name", "catalog", "schema_name", "schema", name} {
		if s := x.Text(k); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ".")
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
