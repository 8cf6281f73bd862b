package duck

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// bind gives the statement its arguments. DuckDB copies them.
func (r *Rows) bind(args [][]byte) error {
	if n := int(mapping.NParams(r.stmt)); n != len(args) {
		return fmt.Errorf("bind %d arguments to a statement with %d parameters", len(args), n)
	}
	for i, a := range args {
		if mapping.BindBlob(r.stmt, mapping.IdxT(i+1), a) == mapping.StateError {
			return &Error{Message: mapping.PrepareError(r.stmt), SQL: r.sql}
		}
	}
	return nil
}
