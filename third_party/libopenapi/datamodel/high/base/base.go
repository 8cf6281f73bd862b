// Package base has the types of schemas with the fields that Prometheus' API sets.
package base

import (
	"github.com/pb33f/libopenapi/orderedmap"
	"go.yaml.in/yaml/v4"
)

// Info describes the API.
type Info struct {
	Title, Description, Version string
	Contact                     *Contact
}

// Contact names who offers the API.
type Contact struct{ Name, URL string }

// Tag groups operations.
type Tag struct{ Name, Summary, Description string }

// Example is a value as it may occur.
type Example struct {
	Summary, Description string
	Value                *yaml.Node
}

// DynamicValue is an A or a B.
type DynamicValue[A, B any] struct {
	N int
	A A
	B B
}

// Schema is the type of a value.
type Schema struct {
	Type, Required                               []string
	Format, Title, Description, ContentMediaType string
	Properties                                   *orderedmap.Map[string, *SchemaProxy]
	Items, AdditionalProperties                  *DynamicValue[*SchemaProxy, bool]
	OneOf, AnyOf                                 []*SchemaProxy
	ContentSchema                                *SchemaProxy
	Example, Default                             *yaml.Node
	Enum                                         []*yaml.Node
	MinItems, MaxItems                           *int64
	Minimum                                      *float64
}

// SchemaProxy is a schema, or the name of one.
type SchemaProxy struct{}

// CreateSchemaProxy drops the schema.
func CreateSchemaProxy(*Schema) *SchemaProxy { return nil }

// CreateSchemaProxyRef drops the name.
func CreateSchemaProxyRef(string) *SchemaProxy { return nil }
