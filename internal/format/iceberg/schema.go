package iceberg

import (
	"encoding/json"
	"fmt"
)

// Type is the type of a column: "string", "long", "double", or a *Map.
type Type any

// Primitive types.
const (
	String = "string"
	Long   = "long"
	Double = "double"
)

// Map is the type of a column of maps whose keys and values are strings.
type Map struct{ KeyID, ValueID int }

// MarshalJSON returns the type as the specification has it (appendix C).
func (m *Map) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"type":"map","key-id":%d,"key":"string","value-id":%d,"value":"string","value-required":true}`, m.KeyID, m.ValueID), nil
}

// Field is a column of a table.
type Field struct {
	ID       int    `json:"id"` // never changes, unlike the name
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Type     Type   `json:"type"`
	Doc      string `json:"doc,omitempty"`
}

// UnmarshalJSON reads a field that this package wrote.
func (f *Field) UnmarshalJSON(b []byte) error {
	type plain Field
	if err := json.Unmarshal(b, (*plain)(f)); err != nil {
		return fmt.Errorf("read field: %w", err)
	}
	m, ok := f.Type.(map[string]any)
	if !ok {
		return nil
	}
	k, _ := m["key-id"].(float64)
	v, _ := m["value-id"].(float64)
	f.Type = &Map{int(k), int(v)}
	return nil
}

// Schema is a version of a table's columns.
type Schema struct {
	Type   string  `json:"type"` // "struct"
	ID     int     `json:"schema-id"`
	Fields []Field `json:"fields"`
}

// NameMapping gives the columns of files without field ids their ids (appendix C, "Name Mapping
// Serialization"). Every column of the files must have an entry, because pyiceberg refuses others.
type NameMapping []MappedField

// MappedField is a column of files.
type MappedField struct {
	ID     int         `json:"field-id"`
	Names  []string    `json:"names"`
	Fields NameMapping `json:"fields,omitempty"`
}

// PropertyNameMapping is the table property that holds the NameMapping as JSON.
const PropertyNameMapping = "schema.name-mapping.default"
