package statement

import (
	"fmt"
	"strings"
)

// Kind is what a function of PromQL takes.
type Kind int

// The kinds of functions.
const (
	Windows Kind = iota // a range function as an aggregate over samples
	Lists               // over lists of values, as an aggregate or not
	Macro               // of grids and labels, no aggregate
)

// Function is a function of PromQL. Of Windows: how many parameters it has before the sample's
// time, and after the window. A window is its two bounds, a grid or, with OVER, its length.
type Function struct {
	Kind          Kind
	Before, After int
}

// types returns those of n arguments, nil if no form has so many.
func (a Function) types(n int) (out []string) {
	if a.Kind != Windows {
		return nil
	}
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
func (a Function) sliding() int { return 3 + a.Before + a.After }

// check refuses calls that DuckDB would crash on, or that have another window than the arguments say.
// If all rows go to one state, DuckDB gives aggregates of the C API one pointer to it, where they
// expect one for each row: so it does for arguments in an order, and for a frame that is the whole
// partition.
func (a Function) check(name string, call Node) error {
	if err := checkOrder(name, call); err != nil || call["class"] != "WINDOW" {
		return err
	}
	if a.Kind != Windows {
		return refuse("the function %q is not available with OVER", name)
	}
	if len(call.List("children")) > a.sliding() {
		return refuse("the function %q is not available with OVER and the bounds of its window, which a frame does not move; "+
			"give the length of the window: %s(ts, value, INTERVAL 5 MINUTE)", name, name)
	}
	if len(call.List("orders")) == 0 || call["start"] == "UNBOUNDED_PRECEDING" && call["end"] == "UNBOUNDED_FOLLOWING" {
		return refuse("the function %q with OVER needs ORDER BY ts and a frame that ends at the current row, such as RANGE INTERVAL 5 MINUTE PRECEDING; "+
			"for one window of all rows, use GROUP BY", name)
	}
	return nil
}

// checkOrder refuses a call with its arguments in an order.
func checkOrder(name string, call Node) error {
	if len(call.Node("order_bys").List("orders"))+len(call.List("arg_orders")) > 0 || call.Flag("distinct") {
		return refuse("the function %q is not available with ORDER BY or DISTINCT in its arguments: it has an order of its own", name)
	}
	return nil
}

// castTexts casts constant texts among the arguments of aggregates, as '-inf' and '5 minutes': DuckDB
// does not for aggregates of the C API. It reports whether there are any.
func castTexts(tree Node, promql map[string]Function) (cast bool) {
	for n := range tree.All() {
		a, ok := promql[lower(n["function_name"])]
		if !ok {
			continue
		}
		children := n.List("children")
		for i, t := range a.types(len(children)) {
			if c := object(children[i]); c["class"] == "CONSTANT" && c.Node("value").Node("type")["id"] == "VARCHAR" {
				children[i], cast = castNode(c, t), true
			}
		}
	}
	return cast
}

func castNode(child map[string]any, to string) map[string]any {
	return map[string]any{
		"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": child["query_location"],
		"child": child, "cast_type": kind(to), "try_cast": false,
	}
}

// CheckLocal refuses the calls of PromQL's aggregates with which DuckDB crashes or returns wrong
// values, given the answer of json_serialize_sql for a statement over local files. Such a statement
// may do everything else. DuckDB itself reports a text that is not a query.
func CheckLocal(answer []byte) error {
	var tree Node
	if err := Decode(answer, &tree); err != nil {
		return fmt.Errorf("read DuckDB's tree: %w", err)
	}
	for n := range tree.All() {
		name := lower(n["function_name"])
		if !strings.HasPrefix(name, "prom_") {
			continue
		}
		if n["class"] == "WINDOW" {
			return refuse("the function %q is not available with OVER for local files; a server or --store has PromQL's functions for windows", name)
		}
		if err := checkOrder(name, n); err != nil {
			return err
		}
	}
	return nil
}
