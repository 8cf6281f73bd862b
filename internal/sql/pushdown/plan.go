// Package pushdown finds out which rows of a table function a statement can use.
//
// DuckDB's C API does not tell a table function the conditions of a statement. Its optimizer moves
// them next to the scan all the same, and json_serialize_plan shows its plan. This package reads
// the conditions directly above each scan. DuckDB applies them to the scan's rows anyway, so what
// it does not understand is left out: a Constraint admits all rows that the statement can use, and
// maybe others.
package pushdown

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/sql/statement"
)

// Scan is a table function in a plan.
type Scan struct {
	Function  string
	Arguments []*string // as texts; nil: NULL, or of a type that is not read
	columns   []string  // of the table, by position
	conds     []node    // of which all hold, over outputs
	outputs   []int     // by column of the scan's result: its position in columns, -1 for others
	Reads     []int     // positions in the table's columns that are read
}

// document is the answer of json_serialize_plan.
type document struct {
	Failed  bool   `json:"error"`
	Message string `json:"error_message"`
	Plans   []node `json:"plans"`
}

// PlanError reports that DuckDB cannot plan a statement.
type PlanError struct{ Message string }

// Error implements error.
func (e *PlanError) Error() string { return e.Message }

// BadQuery marks an error that the HTTP API answers with 400.
func (*PlanError) BadQuery() bool { return true }

// Scans returns the table functions in the optimized plan of a statement, given the answer of
// json_serialize_plan(…, optimize := true), and whether the plan makes each row from one row of the
// only one of them. It fails with a *PlanError if DuckDB did.
func Scans(answer []byte) (out []*Scan, rowwise bool, err error) {
	var d document
	if err := statement.Decode(answer, &d); err != nil {
		return nil, false, fmt.Errorf("read DuckDB's plan: %w", err)
	}
	if d.Failed {
		return nil, false, &PlanError{d.Message}
	}
	rowwise = true
	for _, p := range d.Plans {
		out = scans(out, p)
		for n := range p.All() {
			kind := n.Text("type")
			rowwise = rowwise && (!strings.HasPrefix(kind, "LOGICAL_") || slices.Contains(rowwiseOperators, kind))
		}
	}
	return out, rowwise && len(out) == 1, nil
}

var rowwiseOperators = []string{"LOGICAL_FILTER", "LOGICAL_GET", "LOGICAL_PROJECTION"}

// scans appends the scans of a plan.
func scans(out []*Scan, n node) []*Scan {
	children := n.Nodes("children")
	switch {
	case n.Text("type") == "LOGICAL_GET":
		out = append(out, scan(n, nil))
	case n.Text("type") == "LOGICAL_FILTER" && len(children) == 1 && children[0].Text("type") == "LOGICAL_GET":
		out = append(out, scan(children[0], n.Nodes("expressions")))
		children = children[0].Nodes("children")
	}
	for _, c := range children {
		out = scans(out, c)
	}
	return out
}

// scan returns a get, of whose rows only those are used for which all conditions hold.
func scan(n node, conds []node) *Scan {
	s := &Scan{Function: n.Text("name"), conds: conds}
	for _, p := range n.Nodes("parameters") {
		s.Arguments = append(s.Arguments, argument(p))
	}
	names := n.List("names")
	for _, c := range names {
		name, _ := c.(string)
		s.columns = append(s.columns, name)
	}
	for _, c := range n.Nodes("column_indexes") { // the columns that it reads
		at, ok := integer(c["index"])
		if !ok || at < 0 || at >= int64(len(names)) {
			at = -1
		}
		s.outputs = append(s.outputs, int(at))
		if at >= 0 {
			s.Reads = append(s.Reads, int(at))
		}
	}
	if projected := n.List("projection_ids"); len(projected) > 0 { // those of them that it returns
		read := s.outputs
		s.outputs = nil
		for _, p := range projected {
			at := -1
			if i, ok := integer(p); ok && i >= 0 && i < int64(len(read)) {
				at = read[i]
			}
			s.outputs = append(s.outputs, at)
		}
	}
	return s
}

// node is an operator of a plan, or an expression, as DuckDB serializes LogicalOperator and
// Expression.
type node = statement.Node

// integer returns a value that is an integer.
func integer(x any) (int64, bool) {
	v, ok := x.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := v.Int64()
	return i, err == nil
}

// argument returns a value as a text, nil if it is NULL or of a type that is not read.
func argument(n node) *string {
	i, isInteger := integer(n["value"])
	text, isText := n["value"].(string)
	switch id := n.Node("type").Text("id"); {
	case isText && id == "VARCHAR":
	case isInteger && (id == "TIMESTAMP" || id == "TIMESTAMP WITH TIME ZONE"):
		text = time.UnixMicro(i).UTC().Format(time.RFC3339Nano)
	case isInteger && (id == "INTEGER" || id == "BIGINT"):
		text = strconv.FormatInt(i, 10)
	default:
		return nil
	}
	return &text
}

// constant returns the value of a constant of a type, nil for others.
func constant(n node, typeID string) any {
	v := n.Node("value")
	if n["expression_class"] != "BOUND_CONSTANT" || v.Flag("is_null") || v.Node("type")["id"] != typeID {
		return nil
	}
	return v["value"]
}
