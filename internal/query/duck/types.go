package duck

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Names of the column types that views exist for, as DuckDB spells them.
const (
	UInteger = "UINTEGER"
	BigInt   = "BIGINT"
	UBigInt  = "UBIGINT"
	Double   = "DOUBLE"
	Varchar  = "VARCHAR"
	Doubles  = Double + "[]"
)

// typeName spells a column type. A type without a view gets a name that no statement expects.
func typeName(t mapping.LogicalType) string {
	switch id := mapping.GetTypeId(t); id {
	case mapping.TypeUInteger:
		return UInteger
	case mapping.TypeBigInt:
		return BigInt
	case mapping.TypeUBigInt:
		return UBigInt
	case mapping.TypeDouble:
		return Double
	case mapping.TypeVarchar:
		return Varchar
	case mapping.TypeList:
		child := mapping.ListTypeChildType(t)
		defer mapping.DestroyLogicalType(&child)
		return typeName(child) + "[]"
	default:
		return fmt.Sprintf("type %d", id)
	}
}
