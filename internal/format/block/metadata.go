package block

import (
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// Columns of metadata.parquet in addition to metric.
const (
	ColType = "type"
	ColUnit = "unit"
	ColHelp = "help"
)

// writeMetadata writes metadata.parquet and returns its table.
func writeMetadata(files Files, z *zstd.Encoder, limit int, list []segment.Metadata) (*table, error) {
	s := parquetfile.NewSchema("promlake_metadata")
	for _, name := range []string{segment.ColMetric, ColType, ColUnit, ColHelp} {
		s.Add(parquetfile.String(name))
	}
	t := newTable(files, z, func(int) string { return MetadataFile }, math.MaxInt64, s)
	for len(list) > 0 {
		n := min(len(list), limit)
		if err := t.metadataGroup(list[:n]); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	return t, t.end()
}

// metadataGroup writes one row group.
func (t *table) metadataGroup(list []segment.Metadata) error {
	if err := t.begin(); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		of   func(*segment.Metadata) string
	}{
		{segment.ColMetric, func(m *segment.Metadata) string { return m.Metric }},
		{ColType, func(m *segment.Metadata) string { return m.Type }},
		{ColUnit, func(m *segment.Metadata) string { return m.Unit }},
		{ColHelp, func(m *segment.Metadata) string { return m.Help }},
	} {
		values := make([][]byte, len(list))
		for i := range list {
			values[i] = []byte(c.of(&list[i]))
		}
		t.pq.Add(parquetfile.Binaries(c.name, &t.s, values), nil)
	}
	return t.endGroup(RowGroup{Rows: int64(len(list))})
}
