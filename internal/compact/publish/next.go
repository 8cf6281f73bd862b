package publish

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
)

const (
	specID = 0
	// orderID is the identifier of the sort order; 0 means unsorted.
	orderID = 1
)

// next returns the metadata of the next version, with a new snapshot whose list is not yet written.
func (v *version) next(metas []block.Meta) (*iceberg.Metadata, error) {
	id, err := v.newID()
	if err != nil {
		return nil, err
	}
	var m iceberg.Metadata
	if v.data != nil {
		m = *v.data
	} else {
		m = v.first(id)
	}
	// Add a schema if the last one lacks a label column of metas.
	var before []iceberg.Field
	if s := m.Schema(); s != nil {
		before = s.Fields
	} else {
		before = v.table.fields()
		m.LastColumnID = len(before)
	}
	fields, last := v.table.withLabels(slices.Clone(before), m.LastColumnID, metas)
	mapping, err := v.table.mapping(fields)
	if err != nil {
		return nil, err
	}
	m.Properties = maps.Clone(m.Properties)
	if m.Properties == nil {
		m.Properties = map[string]string{}
	}
	m.Properties[iceberg.PropertyNameMapping] = mapping
	m.Properties["gc.enabled"] = "false" // no engine may delete files of blocks
	if len(m.Schemas) == 0 || len(fields) != len(before) {
		m.CurrentSchemaID++
		m.Schemas = append(slices.Clone(m.Schemas), iceberg.Schema{Type: "struct", ID: m.CurrentSchemaID, Fields: fields})
	}
	m.LastColumnID = last
	m.Location = v.location()
	m.LastUpdated = max(v.now, m.LastUpdated+1)
	m.LastSequenceNumber++
	s := iceberg.Snapshot{
		ID: int64(binary.BigEndian.Uint64(id[8:]) >> 1), SequenceNumber: m.LastSequenceNumber, Timestamp: m.LastUpdated,
		ManifestList: v.set.Location(v.prefix() + id.String() + "-list.avro"), SchemaID: m.CurrentSchemaID,
	}
	if p := m.Snapshot(); p != nil {
		s.ParentID = &p.ID
	}
	m.CurrentSnapshotID = s.ID
	m.Refs = map[string]iceberg.Ref{"main": {SnapshotID: s.ID, Type: "branch"}}
	m.Snapshots = append(slices.Clone(m.Snapshots), s)
	expired := 0 // those that were replaced longer than Settings.Keep ago; they are in order of time
	for expired+1 < len(m.Snapshots) && m.Snapshots[expired+1].Timestamp < v.now-v.set.Keep.Milliseconds() {
		expired++
	}
	m.Snapshots, m.SnapshotLog = m.Snapshots[expired:], nil
	for _, s := range m.Snapshots {
		m.SnapshotLog = append(m.SnapshotLog, iceberg.LogEntry{Timestamp: s.Timestamp, SnapshotID: s.ID})
	}
	m.Schemas = slices.DeleteFunc(slices.Clone(m.Schemas), func(x iceberg.Schema) bool {
		return !slices.ContainsFunc(m.Snapshots, func(s iceberg.Snapshot) bool { return s.SchemaID == x.ID })
	})
	return &m, nil
}

// first returns the metadata of a new table without columns and snapshots.
func (v *version) first(id ulid.ULID) iceberg.Metadata {
	return iceberg.Metadata{
		FormatVersion: 2, TableUUID: fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), CurrentSnapshotID: -1, CurrentSchemaID: -1,
		DefaultSpecID: specID, LastPartitionID: iceberg.PartitionID,
		PartitionSpecs: []iceberg.PartitionSpec{{ID: specID, Fields: []iceberg.PartitionField{{
			Name: iceberg.PartitionName, Transform: fmt.Sprintf("truncate[%d]", dayMillis), SourceID: v.table.time, ID: iceberg.PartitionID,
		}}}},
		DefaultSortOrderID: orderID,
		SortOrders: []iceberg.SortOrder{{ID: orderID, Fields: []iceberg.SortField{{
			Transform: "identity", SourceID: idMetric, Direction: "asc", NullOrder: "nulls-first",
		}}}},
		MetadataLog: []struct{}{},
	}
}
