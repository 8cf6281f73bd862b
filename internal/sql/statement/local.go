package statement

import (
	"fmt"
	"strings"
)

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
