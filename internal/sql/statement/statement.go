// Package statement decides which SQL statements are answered, on the tree of DuckDB's own parser:
// single queries over the tenant's tables that reach nothing else. It is pure.
//
// The decision is not the only protection: the database of a statement has no files, no network and
// a locked configuration. It makes refusals early and clear, and hides what the process is.
package statement

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Statement is a statement that may run.
type Statement struct {
	Text    string // without EXPLAIN
	Explain bool   // the plan is asked for, not the rows
	Analyze bool   // the plan is asked for with measurements

	parameters int  // of the statement
	tree       Node // of json_serialize_sql
	promql     map[string]Function
}

// RefusedError reports a statement that is not answered.
type RefusedError struct {
	Reason string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Reason }

// BadQuery marks an error that the HTTP API answers with 400.
func (*RefusedError) BadQuery() bool { return true }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// forms names what is answered, for error messages.
const forms = "one SELECT statement (also WITH, FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW TABLES), or EXPLAIN of one"

// explain matches the beginning of an EXPLAIN statement. What follows is parsed by itself.
var explain = regexp.MustCompile(`(?i)^EXPLAIN(\s+ANALYZE)?\s`)

// Split returns the text that the parser gets, and whether its plan is asked for.
func Split(text string) (Statement, error) {
	s := Statement{Text: strings.TrimRight(strings.TrimSpace(text), "; \t\r\n")}
	if strings.ContainsRune(s.Text, 0) {
		return s, refuse("the statement has a NUL byte")
	}
	if m := explain.FindStringSubmatch(s.Text); m != nil {
		s.Explain, s.Analyze = true, m[1] != ""
		s.Text = strings.TrimSpace(s.Text[len(m[0]):])
	}
	if s.Text == "" {
		return s, refuse("the statement is empty; want %s", forms)
	}
	return s, nil
}

// Check decides about a statement, given the answer of json_serialize_sql for its text and the
// names of the tables and table functions that it may read, and the functions of PromQL that it may
// call beside DuckDB's.
func (s *Statement) Check(answer []byte, tables, functions []string, promql map[string]Function) error {
	var d struct {
		Failed     bool   `json:"error"`
		Kind       string `json:"error_type"`
		Message    string `json:"error_message"`
		Statements []Node `json:"statements"`
	}
	if err := Decode(answer, &d); err != nil {
		return fmt.Errorf("read DuckDB's tree: %w", err)
	}
	switch {
	case d.Failed && d.Kind == "not implemented" && strings.HasPrefix(d.Message, "Only SELECT"):
		return refuse("the statement is not a query; want %s", forms)
	case d.Failed:
		return refuse("%s", d.Message)
	case len(d.Statements) == 0:
		return refuse("the statement is empty; want %s", forms)
	case len(d.Statements) > 1:
		return refuse("there are %d statements; want %s", len(d.Statements), forms)
	}
	r := &rules{tables: map[string]bool{}, functions: map[string]bool{}, promql: promql, ctes: map[string]bool{}, parameters: map[string]bool{}}
	for _, t := range tables {
		r.tables[strings.ToLower(t)] = true
	}
	for _, f := range append(functions, tableFunctions...) {
		r.functions[strings.ToLower(f)] = true
	}
	tree := d.Statements[0]
	r.collect(tree)
	if err := r.walk(map[string]any(tree), false); err != nil {
		return err
	}
	widest, outside := 0.0, unknown
	outside.columns = map[string]float64{}
	scope{map[string]width{}, map[string]width{}, outside, &widest}.query(tree.Node("node"))
	if widest > maxFields {
		return refuse("the statement makes values with more than %d fields; put fewer columns into structs of structs", maxFields)
	}
	s.parameters, s.tree, s.promql = len(r.parameters), tree, promql
	return nil
}

// makers are parts of the names of all functions that may make maps.
var makers = []string{"histogram", "json", "map", "type"}

// mapTypes are types that are maps, or that may be.
var mapTypes = []string{"MAP", "UNBOUND", "USER", "VARIANT"}

// MakesMaps reports whether the statement may have maps other than those of its tables. It is for
// statements that Check admits.
func (s *Statement) MakesMaps() bool {
	for n := range s.tree.All() {
		if named(n, makers) || slices.Contains(mapTypes, n.Text("id")) {
			return true
		}
	}
	return false
}

// named reports whether a node is a call of a function whose name has one of some parts.
func named(n Node, parts []string) bool {
	name := lower(n["function_name"])
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}
