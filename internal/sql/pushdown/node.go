package pushdown

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/sql/statement"
)

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
