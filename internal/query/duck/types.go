package duck

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Names of the column types that views exist for, as DuckDB spells them.
const (
	Bool     = "BOOLEAN"
	UInteger = "UINTEGER"
	BigInt   = "BIGINT"
	UBigInt  = "UBIGINT"
	Double   = "DOUBLE"
	Varchar  = "VARCHAR"
	Blob     = "BLOB"
	Time     = "TIMESTAMP WITH TIME ZONE"
	Times    = Time + "[]"
	Doubles  = Double + "[]"
	Varchars = Varchar + "[]"
	Blobs    = Blob + "[]"
	Map      = "MAP(VARCHAR, VARCHAR)"
)

// TypeName spells a column type. Types without a view get a name that no statement expects.
func TypeName(t mapping.LogicalType) string {
	switch id := mapping.GetTypeId(t); id {
	case mapping.TypeBoolean:
		return Bool
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
	case mapping.TypeBlob:
		return Blob
	case mapping.TypeTimestampTZ:
		return Time
	case mapping.TypeList:
		child := mapping.ListTypeChildType(t)
		defer mapping.DestroyLogicalType(&child)
		return TypeName(child) + "[]"
	case mapping.TypeMap:
		k, v := mapping.MapTypeKeyType(t), mapping.MapTypeValueType(t)
		defer mapping.DestroyLogicalType(&k)
		defer mapping.DestroyLogicalType(&v)
		return fmt.Sprintf("MAP(%s, %s)", TypeName(k), TypeName(v))
	default:
		return fmt.Sprintf("type %d", id)
	}
}
