package iceberg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// DataFile is a Parquet file of a table. The keys of maps are ids of fields.
type DataFile struct {
	Path         string
	Rows, Bytes  int64
	Partition    int64
	ColumnBytes  map[int]int64
	Values       map[int]int64 // rows of each column; none is null
	Lower, Upper map[int][]byte
	Splits       []int64 // where row groups begin in the file, ascending
}

// statusAdded marks a file as added by the snapshot that added its manifest.
const statusAdded = 1

type entry struct {
	Status             int32     `avro:"status"`
	SnapshotID         *int64    `avro:"snapshot_id"`          // null: that of the manifest
	SequenceNumber     *int64    `avro:"sequence_number"`      // null: that of the manifest
	FileSequenceNumber *int64    `avro:"file_sequence_number"` // null: that of the manifest
	DataFile           entryFile `avro:"data_file"`
}

type entryFile struct {
	Content      int32     `avro:"content"`
	Path         string    `avro:"file_path"`
	Format       string    `avro:"file_format"`
	Partition    partition `avro:"partition"`
	Rows         int64     `avro:"record_count"`
	Bytes        int64     `avro:"file_size_in_bytes"`
	ColumnSizes  []counted `avro:"column_sizes"`
	ValueCounts  []counted `avro:"value_counts"`
	NullCounts   []counted `avro:"null_value_counts"`
	LowerBounds  []bound   `avro:"lower_bounds"`
	UpperBounds  []bound   `avro:"upper_bounds"`
	SplitOffsets []int64   `avro:"split_offsets"`
	SortOrderID  int32     `avro:"sort_order_id"`
}

type partition struct {
	Value *int64 `avro:"day"`
}

type counted struct {
	Key   int32 `avro:"key"`
	Value int64 `avro:"value"`
}

type bound struct {
	Key   int32  `avro:"key"`
	Value []byte `avro:"value"`
}

// EncodeManifest returns a manifest of files that the snapshot adds which first lists it.
func EncodeManifest(m *Metadata, files []DataFile) ([]byte, error) {
	spec := m.PartitionSpecs[0]
	schemaJSON, err := json.Marshal(m.Schema())
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	specJSON, err := json.Marshal(spec.Fields)
	if err != nil {
		return nil, fmt.Errorf("encode partitions: %w", err)
	}
	meta := map[string][]byte{
		"schema": schemaJSON, "schema-id": []byte(strconv.Itoa(m.CurrentSchemaID)), "partition-spec": specJSON,
		"partition-spec-id": []byte(strconv.Itoa(spec.ID)), "format-version": []byte("2"), "content": []byte("data"),
	}
	entries := make([]entry, len(files))
	for i := range files {
		f := &files[i]
		entries[i] = entry{Status: statusAdded, DataFile: entryFile{
			Path: f.Path, Format: "PARQUET", Partition: partition{&f.Partition}, Rows: f.Rows, Bytes: f.Bytes,
			ColumnSizes: byField(f.ColumnBytes, count), ValueCounts: byField(f.Values, count), NullCounts: byField(f.Values, zero),
			LowerBounds: byField(f.Lower, boundOf), UpperBounds: byField(f.Upper, boundOf), SplitOffsets: f.Splits, SortOrderID: int32(m.DefaultSortOrderID),
		}}
	}
	return encode(manifestSchema, meta, entries)
}

// encode returns rows as an Avro object container file.
func encode[T any](schema *avro.Schema, meta map[string][]byte, rows []T) ([]byte, error) {
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, schema, ocf.WithCodec(ocf.DeflateCodec(deflateLevel)), ocf.WithMetadata(meta))
	if err != nil {
		return nil, fmt.Errorf("begin Avro file: %w", err)
	}
	for i := range rows {
		if err := w.Encode(&rows[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("encode Avro record: %w", err), w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end Avro file: %w", err)
	}
	return out.Bytes(), nil
}

const deflateLevel = 6
