package publish

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// choose returns the blocks whose rows are published, and the others. No two of the chosen ones
// share a time of their windows and a series, so no sample is published twice: of overlapping
// blocks the one of the higher level is chosen, then the one of the higher rank. Parts are never
// chosen, because they are merged within minutes.
func choose(blocks []catalog.Block) (chosen, others []catalog.Block) {
	sorted := slices.Clone(blocks)
	slices.SortStableFunc(sorted, func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), b.Rank.Compare(a.Rank))
	})
	for _, b := range sorted {
		if b.Level == key.Part || slices.ContainsFunc(chosen, func(c catalog.Block) bool { return overlap(b, c) }) {
			others = append(others, b)
		} else {
			chosen = append(chosen, b)
		}
	}
	return chosen, others
}

func overlap(a, b catalog.Block) bool {
	return int64(a.Window) < b.Level.End(b.Window) && int64(b.Window) < a.Level.End(a.Window) && a.Slice.Shares(b.Slice)
}

// dayMillis is the length of a UTC day. Each block lies in one.
const dayMillis = 24 * 60 * 60 * 1000

// day is the published blocks of a UTC day.
type day struct {
	start  int64 // ms since the epoch
	blocks []catalog.Block
}

// daysOf returns blocks by day, in ascending order.
func daysOf(blocks []catalog.Block) []day {
	var days []day
	for _, b := range slices.SortedFunc(slices.Values(blocks), func(a, b catalog.Block) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), a.ID.Compare(b.ID))
	}) {
		start := int64(key.L24h.WindowOf(int64(b.Window)))
		if n := len(days); n == 0 || days[n-1].start != start {
			days = append(days, day{start: start})
		}
		last := &days[len(days)-1]
		last.blocks = append(last.blocks, b)
	}
	return days
}

// layoutVersion changes the names of manifests, so that all are written anew after a change of what
// they have.
const layoutVersion = "1"

// stem is the first part of the names of the day's manifests. Manifests of equal stems have equal
// files.
func (d *day) stem() string {
	h := sha256.New()
	h.Write([]byte(layoutVersion))
	for _, b := range d.blocks {
		h.Write([]byte("\n" + b.BlockID().String()))
	}
	return time.UnixMilli(d.start).UTC().Format("20060102") + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + "-"
}

// manifestName is the name of a manifest from which a number of the day's blocks are left out,
// because an earlier version wrote them.
func manifestName(stem string, old int, id ulid.ULID) string {
	return stem + strconv.Itoa(old) + "-" + id.String() + ".avro"
}

// leftOut returns the number of blocks that a manifest with this stem leaves out.
func leftOut(name, stem string) int {
	n, _, _ := strings.Cut(strings.TrimPrefix(name, stem), "-")
	old, _ := strconv.Atoi(n) // manifestName made the name
	return old
}

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
