package statement

import (
	"encoding/json"
	"fmt"
	"strings"
)

// CheckLocal refuses the calls of PromQL's aggregates with which DuckDB crashes or returns wrong
// values, given the answer of json_serialize_sql for a statement over local files. Such a statement
// may do everything else. DuckDB itself reports a text that is not a query.
func CheckLocal(answer []byte) error {
	var tree any
	if err := json.Unmarshal(answer, &tree); err != nil {
		return fmt.Errorf("read DuckDB's tree: %w", err)
	}
	return checkLocal(tree)
}

func checkLocal(x any) error {
	node, _ := x.(map[string]any)
	if name := lower(node["function_name"]); strings.HasPrefix(name, "prom_") {
		if node["class"] == "WINDOW" {
			return refuse("the function %q is not available with OVER for local files; a server or --store has PromQL's functions for windows", name)
		}
		if err := checkOrder(name, node); err != nil {
			return err
		}
	}
	for _, p := range below(x) {
		if err := checkLocal(p); err != nil {
			return err
		}
	}
	return nil
}
