package duck

import (
	"fmt"
	"strings"

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

// simple are the types without parts, as SQL spells them.
var simple = map[mapping.Type]string{
	mapping.TypeBoolean: "BOOLEAN", mapping.TypeTinyInt: "TINYINT", mapping.TypeSmallInt: "SMALLINT", mapping.TypeInteger: "INTEGER", mapping.TypeBigInt: BigInt,
	mapping.TypeUTinyInt: "UTINYINT", mapping.TypeUSmallInt: "USMALLINT", mapping.TypeUInteger: UInteger, mapping.TypeUBigInt: UBigInt,
	mapping.TypeFloat: "FLOAT", mapping.TypeDouble: Double, mapping.TypeTimestamp: "TIMESTAMP", mapping.TypeDate: "DATE", mapping.TypeTime: "TIME",
	mapping.TypeInterval: "INTERVAL", mapping.TypeHugeInt: "HUGEINT", mapping.TypeUHugeInt: "UHUGEINT", mapping.TypeVarchar: Varchar, mapping.TypeBlob: "BLOB",
	mapping.TypeTimestampS: "TIMESTAMP_S", mapping.TypeTimestampMS: "TIMESTAMP_MS", mapping.TypeTimestampNS: "TIMESTAMP_NS",
	mapping.TypeTimestampTZ: "TIMESTAMP WITH TIME ZONE", mapping.TypeTimeTZ: "TIME WITH TIME ZONE", mapping.TypeEnum: "ENUM", mapping.TypeUUID: "UUID",
	mapping.TypeBit: "BIT", mapping.TypeUnion: "UNION", mapping.TypeSQLNull: "NULL",
}

// TypeName spells a type as SQL does.
func TypeName(t mapping.LogicalType) string {
	part := func(t mapping.LogicalType) string {
		defer mapping.DestroyLogicalType(&t)
		return TypeName(t)
	}
	switch id := mapping.GetTypeId(t); id {
	case mapping.TypeDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", mapping.DecimalWidth(t), mapping.DecimalScale(t))
	case mapping.TypeList:
		return part(mapping.ListTypeChildType(t)) + "[]"
	case mapping.TypeArray:
		return fmt.Sprintf("%s[%d]", part(mapping.ArrayTypeChildType(t)), mapping.ArrayTypeArraySize(t))
	case mapping.TypeMap:
		return fmt.Sprintf("MAP(%s, %s)", part(mapping.MapTypeKeyType(t)), part(mapping.MapTypeValueType(t)))
	case mapping.TypeStruct:
		var fields []string
		for i := range mapping.StructTypeChildCount(t) {
			fields = append(fields, Ident(mapping.StructTypeChildName(t, i))+" "+part(mapping.StructTypeChildType(t, i)))
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")"
	default:
		if name, ok := simple[id]; ok {
			return name
		}
		return fmt.Sprintf("type %d", id)
	}
}
