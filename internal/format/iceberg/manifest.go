package iceberg

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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

// ManifestFile is an entry of a snapshot's list: a manifest of data files.
type ManifestFile struct {
	Path              string           `avro:"manifest_path"`
	Bytes             int64            `avro:"manifest_length"`
	SpecID            int32            `avro:"partition_spec_id"`
	Content           int32            `avro:"content"` // 0: data
	SequenceNumber    int64            `avro:"sequence_number"`
	MinSequenceNumber int64            `avro:"min_sequence_number"`
	AddedSnapshotID   int64            `avro:"added_snapshot_id"`
	AddedFiles        int32            `avro:"added_files_count"`
	ExistingFiles     int32            `avro:"existing_files_count"`
	DeletedFiles      int32            `avro:"deleted_files_count"`
	AddedRows         int64            `avro:"added_rows_count"`
	ExistingRows      int64            `avro:"existing_rows_count"`
	DeletedRows       int64            `avro:"deleted_rows_count"`
	Partitions        []PartitionRange `avro:"partitions"`
}

// PartitionRange has the smallest and largest value of a partition field in a manifest.
type PartitionRange struct {
	ContainsNull bool   `avro:"contains_null"`
	ContainsNaN  *bool  `avro:"contains_nan"`
	Lower        []byte `avro:"lower_bound"`
	Upper        []byte `avro:"upper_bound"`
}

// Listed returns the entry of a manifest that the snapshot s adds. bytes is the manifest's size.
func Listed(path string, bytes int, s *Snapshot, files []DataFile) ManifestFile {
	m := ManifestFile{
		Path: path, Bytes: int64(bytes), SequenceNumber: s.SequenceNumber, MinSequenceNumber: s.SequenceNumber, AddedSnapshotID: s.ID, AddedFiles: int32(len(files)),
	}
	for i := range files {
		m.AddedRows += files[i].Rows
	}
	if len(files) > 0 {
		by := func(a, b DataFile) int { return cmp.Compare(a.Partition, b.Partition) }
		m.Partitions = []PartitionRange{{Lower: LongBound(slices.MinFunc(files, by).Partition), Upper: LongBound(slices.MaxFunc(files, by).Partition)}}
	}
	return m
}

// EncodeList returns the list of a snapshot's manifests.
func EncodeList(s *Snapshot, manifests []ManifestFile) ([]byte, error) {
	meta := map[string][]byte{
		"snapshot-id": strconv.AppendInt(nil, s.ID, 10), "sequence-number": strconv.AppendInt(nil, s.SequenceNumber, 10), "format-version": []byte("2"),
	}
	if s.ParentID != nil {
		meta["parent-snapshot-id"] = strconv.AppendInt(nil, *s.ParentID, 10)
	}
	return encode(listSchema, meta, manifests)
}

// DecodeList is the inverse of EncodeList. Errors: ErrFormat.
func DecodeList(b []byte) ([]ManifestFile, error) {
	r, err := ocf.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%w: open Avro file: %w", ErrFormat, err)
	}
	defer r.Close()
	var rows []ManifestFile
	for {
		var row ManifestFile
		switch err := r.Decode(&row); {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, fmt.Errorf("%w: decode Avro record: %w", ErrFormat, err)
		}
		rows = append(rows, row)
	}
}

// byField returns the entries of a map by the numbers of fields, in their order.
func byField[V, E any](m map[int]V, entry func(field int32, v V) E) []E {
	out := make([]E, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, entry(int32(k), m[k]))
	}
	return out
}

func count(field int32, n int64) counted  { return counted{field, n} }
func zero(field int32, _ int64) counted   { return counted{field, 0} }
func boundOf(field int32, v []byte) bound { return bound{field, v} }
