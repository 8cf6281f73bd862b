package iceberg

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro/ocf"
)

// table returns metadata with everything that this package encodes.
func table() *Metadata {
	parent := int64(7)
	return &Metadata{
		FormatVersion: 2, TableUUID: "00010203-0405-0607-0809-0a0b0c0d0e0f", Location: "s3://b/t", LastSequenceNumber: 2, LastUpdated: 5, LastColumnID: 4, CurrentSchemaID: 1,
		Schemas: []Schema{{Type: "struct", ID: 1, Fields: []Field{
			{ID: 1, Name: "metric", Required: true, Type: String, Doc: "the name"}, {ID: 2, Name: "labels", Type: &Map{KeyID: 3, ValueID: 4}},
		}}},
		PartitionSpecs:     []PartitionSpec{{Fields: []PartitionField{{Name: PartitionName, Transform: "truncate[10]", SourceID: 1, ID: PartitionID}}}},
		LastPartitionID:    PartitionID,
		DefaultSortOrderID: 1,
		SortOrders:         []SortOrder{{ID: 1, Fields: []SortField{{"identity", 1, "asc", "nulls-first"}}}},
		Properties:         map[string]string{"a": "b"},
		CurrentSnapshotID:  8,
		Refs:               map[string]Ref{"main": {8, "branch"}},
		Snapshots:          []Snapshot{{ID: 8, ParentID: &parent, SequenceNumber: 2, Timestamp: 5, ManifestList: "s3://b/t/metadata/l.avro", Summary: map[string]string{"operation": "append"}, SchemaID: 1}},
		SnapshotLog:        []LogEntry{{5, 8}},
		MetadataLog:        []struct{}{},
	}
}

// TestMetadata pins the JSON, which other programs read.
func TestMetadata(t *testing.T) {
	m := table()
	b, err := m.Encode()
	require.NoError(t, err)
	require.JSONEq(t, `{
		"format-version": 2, "table-uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "location": "s3://b/t", "last-sequence-number": 2, "last-updated-ms": 5,
		"last-column-id": 4, "current-schema-id": 1,
		"schemas": [{"type": "struct", "schema-id": 1, "fields": [
			{"id": 1, "name": "metric", "required": true, "type": "string", "doc": "the name"},
			{"id": 2, "name": "labels", "required": false, "type": {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value": "string", "value-required": true}}]}],
		"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": [{"name": "day", "transform": "truncate[10]", "source-id": 1, "field-id": 1000}]}],
		"last-partition-id": 1000, "default-sort-order-id": 1,
		"sort-orders": [{"order-id": 1, "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}]}],
		"properties": {"a": "b"}, "current-snapshot-id": 8, "refs": {"main": {"snapshot-id": 8, "type": "branch"}},
		"snapshots": [{"snapshot-id": 8, "parent-snapshot-id": 7, "sequence-number": 2, "timestamp-ms": 5, "manifest-list": "s3://b/t/metadata/l.avro",
			"summary": {"operation": "append"}, "schema-id": 1}],
		"snapshot-log": [{"timestamp-ms": 5, "snapshot-id": 8}], "metadata-log": []
	}`, string(b))
	back, err := DecodeMetadata(b)
	require.NoError(t, err)
	require.Equal(t, m, back)
	require.Equal(t, int64(8), back.Snapshot().ID)
	for _, bad := range []string{"", "{}", `{"format-version":2}`, `{"format-version":1,"schemas":[{"schema-id":0}]}`, `{"format-version":2,"schemas":[{"schema-id":3}]}`} {
		_, err := DecodeMetadata([]byte(bad))
		require.ErrorIs(t, err, ErrFormat, bad)
	}
}

// TestManifest: a manifest has the files with the ids of the specification, and the table's schema
// for readers that have only the manifest.
func TestManifest(t *testing.T) {
	m := table()
	b, err := EncodeManifest(m, []DataFile{{
		Path: "s3://b/x.parquet", Rows: 3, Bytes: 4, Partition: -10, ColumnBytes: map[int]int64{2: 20, 1: 10}, Values: map[int]int64{1: 3},
		Lower: map[int][]byte{1: StringBound("a")}, Upper: map[int][]byte{1: StringBound("b"), 2: LongBound(-2)}, Splits: []int64{4, 100},
	}})
	require.NoError(t, err)
	r, err := ocf.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	var row map[string]any
	require.NoError(t, r.Decode(&row))
	require.EqualValues(t, 1, row["status"])
	require.Nil(t, row["snapshot_id"])
	file := row["data_file"].(map[string]any)
	require.Equal(t, "s3://b/x.parquet", file["file_path"])
	require.Equal(t, map[string]any{"day": int64(-10)}, file["partition"])
	require.EqualValues(t, 1, file["sort_order_id"])
	require.JSONEq(t, `[{"key":1,"value":10},{"key":2,"value":20}]`, asJSON(t, file["column_sizes"]))
	require.JSONEq(t, `[{"key":1,"value":0}]`, asJSON(t, file["null_value_counts"]))
	require.JSONEq(t, `[{"key":1,"value":"Yg=="},{"key":2,"value":"/v////////8="}]`, asJSON(t, file["upper_bounds"]))
	require.JSONEq(t, `[4,100]`, asJSON(t, file["split_offsets"]))
	meta := r.Metadata()
	require.Equal(t, "data", string(meta["content"]))
	require.Equal(t, "2", string(meta["format-version"]))
	require.JSONEq(t, asJSON(t, m.Schemas[0]), string(meta["schema"]))
	require.JSONEq(t, asJSON(t, m.PartitionSpecs[0].Fields), string(meta["partition-spec"]))
	require.Contains(t, string(meta["avro.schema"]), `"field-id":134`)
	require.Contains(t, string(meta["avro.schema"]), `"logicalType":"map"`)
}

func TestList(t *testing.T) {
	s := table().Snapshots[0]
	want := []ManifestFile{
		Listed("s3://b/m.avro", 9, &s, []DataFile{{Rows: 3, Partition: 20}, {Rows: 4, Partition: -10}}),
		Listed("s3://b/empty.avro", 9, &s, nil),
	}
	require.Equal(t, int64(7), want[0].AddedRows)
	require.Equal(t, []PartitionRange{{Lower: LongBound(-10), Upper: LongBound(20)}}, want[0].Partitions)
	b, err := EncodeList(&s, want)
	require.NoError(t, err)
	got, err := DecodeList(b)
	require.NoError(t, err)
	want[1].Partitions = got[1].Partitions // nil or empty
	require.Equal(t, want, got)
	for _, bad := range [][]byte{nil, b[:len(b)/2], b[:len(b)-1]} {
		_, err := DecodeList(bad)
		require.ErrorIs(t, err, ErrFormat)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
