// Package iceberg encodes and decodes the metadata of Apache Iceberg tables, format version 2
// (https://iceberg.apache.org/spec):
//
//	Metadata (JSON)  the table: schema, partitions, snapshots; a new object for each version
//	└─ List (Avro)   a snapshot: its manifests, with the range of partitions of each
//	   └─ Manifest (Avro)  data files, with their sizes and the ranges of their values
//
// Every object is immutable. Which Metadata is the newest is known to the table's catalog, of which
// this package knows nothing. It has what tables over files of others need: data files in Parquet,
// top-level columns, at most one partition field whose values are integers, and no deletes.
package iceberg

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrFormat reports bytes that are not metadata as this package writes it.
var ErrFormat = errors.New("not the metadata of an Iceberg table that promlake wrote")

// Metadata is the metadata of a table.
type Metadata struct {
	FormatVersion      int               `json:"format-version"`
	TableUUID          string            `json:"table-uuid"`
	Location           string            `json:"location"`
	LastSequenceNumber int64             `json:"last-sequence-number"`
	LastUpdated        int64             `json:"last-updated-ms"`
	LastColumnID       int               `json:"last-column-id"`
	CurrentSchemaID    int               `json:"current-schema-id"`
	Schemas            []Schema          `json:"schemas"`
	DefaultSpecID      int               `json:"default-spec-id"`
	PartitionSpecs     []PartitionSpec   `json:"partition-specs"`
	LastPartitionID    int               `json:"last-partition-id"`
	DefaultSortOrderID int               `json:"default-sort-order-id"`
	SortOrders         []SortOrder       `json:"sort-orders"`
	Properties         map[string]string `json:"properties"`
	CurrentSnapshotID  int64             `json:"current-snapshot-id"`
	Refs               map[string]Ref    `json:"refs"`
	Snapshots          []Snapshot        `json:"snapshots"`
	SnapshotLog        []LogEntry        `json:"snapshot-log"`
	MetadataLog        []struct{}        `json:"metadata-log"`
}

// PartitionSpec divides a table's files.
type PartitionSpec struct {
	ID     int              `json:"spec-id"`
	Fields []PartitionField `json:"fields"`
}

// PartitionField is a value that all rows of a file share.
type PartitionField struct {
	Name      string `json:"name"`
	Transform string `json:"transform"`
	SourceID  int    `json:"source-id"`
	ID        int    `json:"field-id"` // at least 1000
}

// SortOrder is the order of the rows in each file.
type SortOrder struct {
	ID     int         `json:"order-id"`
	Fields []SortField `json:"fields"`
}

// SortField is a column by which rows are sorted.
type SortField struct {
	Transform string `json:"transform"`
	SourceID  int    `json:"source-id"`
	Direction string `json:"direction"`
	NullOrder string `json:"null-order"`
}

// Ref names a snapshot.
type Ref struct {
	SnapshotID int64  `json:"snapshot-id"`
	Type       string `json:"type"`
}

// Snapshot is a state of the table.
type Snapshot struct {
	ID             int64             `json:"snapshot-id"`
	ParentID       *int64            `json:"parent-snapshot-id,omitempty"`
	SequenceNumber int64             `json:"sequence-number"`
	Timestamp      int64             `json:"timestamp-ms"`
	ManifestList   string            `json:"manifest-list"`
	Summary        map[string]string `json:"summary"` // at least "operation"
	SchemaID       int               `json:"schema-id"`
}

// LogEntry is when a snapshot became the current one.
type LogEntry struct {
	Timestamp  int64 `json:"timestamp-ms"`
	SnapshotID int64 `json:"snapshot-id"`
}

// Encode returns m as JSON.
func (m *Metadata) Encode() ([]byte, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode table metadata: %w", err)
	}
	return b, nil
}

// DecodeMetadata is the inverse of Encode. Errors: ErrFormat.
func DecodeMetadata(b []byte) (*Metadata, error) {
	var m Metadata
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if m.FormatVersion != 2 || len(m.Schemas) == 0 || m.Schema() == nil {
		return nil, fmt.Errorf("%w: format version %d, %d schemas", ErrFormat, m.FormatVersion, len(m.Schemas))
	}
	return &m, nil
}

// Schema returns the current schema, nil if there is none.
func (m *Metadata) Schema() *Schema {
	for i := range m.Schemas {
		if m.Schemas[i].ID == m.CurrentSchemaID {
			return &m.Schemas[i]
		}
	}
	return nil
}

// Snapshot returns the current snapshot, nil if there is none.
func (m *Metadata) Snapshot() *Snapshot {
	for i := range m.Snapshots {
		if m.Snapshots[i].ID == m.CurrentSnapshotID {
			return &m.Snapshots[i]
		}
	}
	return nil
}

// LongBound returns a long as bounds have it (appendix D).
func LongBound(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// StringBound returns a string as bounds have it.
func StringBound(v string) []byte { return []byte(v) }
