package statement

import (
	"maps"
	"slices"
	"strings"
)

// maxFields is the number of fields that the type of a value may have, with those of its fields.
// DuckDB shares equal parts of a type, so a chain of n queries that put a column twice into a struct
// makes a type of 2^n fields from nothing. Then it walks through all of them, which no guard ends.
const maxFields = 1 << 12

// constructors are parts of the names of the functions whose values have the fields of all arguments.
var constructors = []string{"array_zip", "list_zip", "map", "row", "struct"}

// width is how many fields the columns of a query have.
type width struct {
	columns   map[string]float64 // by name in lower case; of others, at most most
	most, all float64            // of one column; of all of them
}

// unknown is the width of a table that the statement does not define.
var unknown = width{most: 1, all: 16}

// scope is what the parts of a query may mention.
type scope struct {
	queries map[string]width // WITH, by name
	tables  map[string]width // FROM, by alias
	width                    // of all of FROM, of the queries around, and of the aliases of SELECT
	widest  *float64         // of any part of the statement
}

// query returns the width of a query.
func (s scope) query(node Node) width {
	s.queries, s.tables, s.columns = maps.Clone(s.queries), maps.Clone(s.tables), maps.Clone(s.columns)
	for _, entry := range node.Node("cte_map").Nodes("map") {
		name := lower(entry["key"])
		s.queries[name] = unknown // it may be recursive
		s.queries[name] = s.query(entry.Node("value").Node("query").Node("node"))
	}
	if node["type"] != "SELECT_NODE" { // UNION, a recursive query, PIVOT: of the same columns
		out := unknown
		for _, part := range parts(node, "cte_map") {
			w := s.from(part)
			out.most, out.all = max(out.most, w.most), out.all+w.all
		}
		return out
	}
	from := s.from(node["from_table"])
	s.join(from)
	out := width{columns: map[string]float64{}}
	for _, item := range node.Nodes("select_list") {
		w, all := s.expression(map[string]any(item), false, false), 0.0
		if stars(map[string]any(item)) {
			all = from.all
			if item["class"] == "STAR" && len(item.List("replace_list")) == 0 {
				maps.Copy(out.columns, from.columns)
			}
		}
		name := lower(item["alias"])
		if names := item.List("column_names"); name == "" && len(names) > 0 {
			name = lower(names[len(names)-1])
		}
		if item["class"] != "STAR" {
			out.columns[name] = max(out.columns[name], w)
			s.columns[name] = max(s.columns[name], w)
		}
		out.most, out.all = max(out.most, w), out.all+max(w, all)
	}
	for _, part := range parts(node, "cte_map", "from_table", "select_list") {
		s.expression(part, false, false)
	}
	return out
}

// join adds the columns of a table to the scope.
func (s *scope) join(w width) {
	for name, n := range w.columns {
		s.columns[name] = max(s.columns[name], n)
	}
	s.most, s.all = max(s.most, w.most), s.all+w.all
}

// from returns the width of the tables of FROM, and notes them by their aliases.
func (s scope) from(x any) (out width) {
	node := object(x)
	switch {
	case node["type"] == "BASE_TABLE":
		var known bool
		if out, known = s.queries[lower(node["table_name"])]; !known {
			out = unknown
		}
	case node["type"] == "SUBQUERY":
		out = s.query(node.Node("subquery").Node("node"))
	case strings.HasSuffix(node.Text("type"), "_NODE"):
		return s.query(node)
	default: // JOIN, a table function: what is inside of it
		out = width{columns: map[string]float64{}, most: 1}
		inner := s // LATERAL sees what is to the left of it
		for _, part := range parts(node) {
			var w width
			if nested := object(part); nested != nil && nested["class"] == nil {
				w = inner.from(part)
			} else {
				w.most = inner.expression(part, false, false)
			}
			for name, n := range w.columns {
				out.columns[name] = max(out.columns[name], n)
			}
			out.most, out.all = max(out.most, w.most), out.all+w.all
			inner.join(w)
		}
		out.all = max(out.all, unknown.all)
	}
	if len(node.List("column_name_alias")) > 0 {
		out.columns = nil
	}
	for _, name := range []string{lower(node["alias"]), lower(node["table_name"])} {
		s.tables[name] = width{most: out.most, all: out.all}
	}
	return out
}

// expression returns the width of an expression, of the sum of a list of them, or of the widest.
// joined: it is inside of a constructor.
func (s scope) expression(x any, sum, joined bool) (n float64) {
	defer func() { *s.widest = max(*s.widest, n) }()
	list, _ := x.([]any)
	if node := object(x); node != nil {
		switch node["class"] {
		case "COLUMN_REF":
			names := node.List("column_names")
			found := 0.0
			for _, name := range names {
				found = max(found, s.columns[lower(name)])
			}
			if row, ok := s.tables[lower(names[0])]; ok && len(names) == 1 {
				found = max(found, row.all)
			}
			if found == 0 {
				return s.most
			}
			return found
		case "SUBQUERY":
			n = s.query(node.Node("subquery").Node("node")).most
		case "STAR":
			if n = s.most; joined {
				n = s.all
			}
		}
		sum = node["child_types"] != nil || named(node, constructors)
		list, joined = parts(node, "subquery"), joined || sum
	}
	n = max(n, 1)
	total := 0.0
	for _, part := range list {
		w := s.expression(part, sum, joined)
		n, total = max(n, w), total+w
	}
	if sum {
		n = max(n, total)
	}
	return n
}

// parts returns the nodes and lists in a node, in the order of their names.
func parts(node Node, without ...string) (out []any) {
	for _, name := range sorted(node) {
		switch x := node[name].(type) {
		case map[string]any, []any:
			if !slices.Contains(without, name) {
				out = append(out, x)
			}
		}
	}
	return out
}

// stars reports whether an expression stands for several columns.
func stars(x any) bool {
	list, _ := x.([]any)
	if node := object(x); node != nil {
		if node["class"] == "STAR" {
			return true
		}
		list = parts(node, "subquery")
	}
	return slices.ContainsFunc(list, stars)
}
