package plan

import (
	"fmt"
	"slices"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// fewGroups is the number of groups up to which their ordinals fit into eight bits.
const fewGroups = 1 << 8

// byGroup returns the SELECT of a value per group of the rows of a relation. to has the group of each
// ordinal i of the relation.
//
// A key of eight bits makes DuckDB aggregate into an array. Each of its threads otherwise clears a
// hash table of 2 MB first, whatever the number of groups.
func (b *builder) byGroup(to []uint32, value func(*builder) string, in Node) string {
	at := "prom_at(i, " + b.blob(vector.OrdinalArray(to)) + ")"
	few := !slices.ContainsFunc(to, func(o uint32) bool { return o >= fewGroups && o != vector.NoOrdinal })
	if few {
		at = "CAST(" + at + " AS UTINYINT)"
	}
	sql := fmt.Sprintf("SELECT %s AS i, %s AS v FROM %s GROUP BY 1", at, value(b), b.rel(in))
	if few {
		sql = "SELECT CAST(i AS UINTEGER) AS i, v FROM (" + sql + ")"
	}
	return sql
}
