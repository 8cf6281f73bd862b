package iceberg

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/avro/ocf"
)

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
