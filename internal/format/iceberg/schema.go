package iceberg

import (
	"encoding/json"
	"fmt"

	"github.com/twmb/avro"
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

// PartitionName is the name of the partition field of every table, and PartitionID its field id.
const (
	PartitionName = "day"
	PartitionID   = 1000
)

// The Avro schemas of manifests and of lists, with the field ids of the specification ("Manifests",
// "Manifest Lists"). Optional fields that are never written are left out.
var (
	manifestSchema = avro.MustParse(`{"type":"record","name":"manifest_entry","fields":[
{"name":"status","type":"int","field-id":0},
{"name":"snapshot_id","type":["null","long"],"default":null,"field-id":1},
{"name":"sequence_number","type":["null","long"],"default":null,"field-id":3},
{"name":"file_sequence_number","type":["null","long"],"default":null,"field-id":4},
{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
{"name":"content","type":"int","field-id":134},
{"name":"file_path","type":"string","field-id":100},
{"name":"file_format","type":"string","field-id":101},
{"name":"partition","field-id":102,"type":{"type":"record","name":"r102","fields":[
	{"name":"day","type":["null","long"],"default":null,"field-id":1000}]}},
{"name":"record_count","type":"long","field-id":103},
{"name":"file_size_in_bytes","type":"long","field-id":104},
{"name":"column_sizes","field-id":108,"type":["null",` + longs("k117_v118", "117", "118") + `],"default":null},
{"name":"value_counts","field-id":109,"type":["null",` + longs("k119_v120", "119", "120") + `],"default":null},
{"name":"null_value_counts","field-id":110,"type":["null",` + longs("k121_v122", "121", "122") + `],"default":null},
{"name":"lower_bounds","field-id":125,"type":["null",` + keyed("k126_v127", "126", "127", "bytes") + `],"default":null},
{"name":"upper_bounds","field-id":128,"type":["null",` + keyed("k129_v130", "129", "130", "bytes") + `],"default":null},
{"name":"split_offsets","field-id":132,"type":["null",{"type":"array","items":"long","element-id":133}],"default":null},
{"name":"sort_order_id","field-id":140,"type":["null","int"],"default":null}
]}}]}`)

	listSchema = avro.MustParse(`{"type":"record","name":"manifest_file","fields":[
{"name":"manifest_path","type":"string","field-id":500},
{"name":"manifest_length","type":"long","field-id":501},
{"name":"partition_spec_id","type":"int","field-id":502},
{"name":"content","type":"int","field-id":517},
{"name":"sequence_number","type":"long","field-id":515},
{"name":"min_sequence_number","type":"long","field-id":516},
{"name":"added_snapshot_id","type":"long","field-id":503},
{"name":"added_files_count","type":"int","field-id":504},
{"name":"existing_files_count","type":"int","field-id":505},
{"name":"deleted_files_count","type":"int","field-id":506},
{"name":"added_rows_count","type":"long","field-id":512},
{"name":"existing_rows_count","type":"long","field-id":513},
{"name":"deleted_rows_count","type":"long","field-id":514},
{"name":"partitions","field-id":507,"type":["null",{"type":"array","element-id":508,"items":{"type":"record","name":"r508","fields":[
	{"name":"contains_null","type":"boolean","field-id":509},
	{"name":"contains_nan","type":["null","boolean"],"default":null,"field-id":518},
	{"name":"lower_bound","type":["null","bytes"],"default":null,"field-id":510},
	{"name":"upper_bound","type":["null","bytes"],"default":null,"field-id":511}]}}],"default":null}
]}`)
)

func longs(name, key, value string) string { return keyed(name, key, value, "long") }

// keyed is the schema of a map whose keys are integers: an array of pairs.
func keyed(name, key, value, of string) string {
	return `{"type":"array","logicalType":"map","items":{"type":"record","name":"` + name + `","fields":[
	{"name":"key","type":"int","field-id":` + key + `},{"name":"value","type":"` + of + `","field-id":` + value + `}]}}`
}
