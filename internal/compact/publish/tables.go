package publish

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/iceberg"
	"github.com/promlake/promlake/internal/format/segment"
)

// column is a column of a table that all files have.
type column struct {
	iceberg.Field
	stored string // its name in the files
}

// table is one of the published tables.
type table struct {
	name    string
	time    int // id of the column by which the table is divided into days
	columns []column
	hidden  []string // columns of the files that the table does not have
	labels  bool     // the table has a column for each label
	holds   func(f *block.File) bool
	bytes   func(g *block.RowGroup) map[int]int64 // bytes of columns, by id
}

// Ids of columns that all tables have.
const (
	idMetric = 1
	idSeries = 2
)

func required(id int, name string, t iceberg.Type, doc string) iceberg.Field {
	return iceberg.Field{ID: id, Name: name, Required: true, Type: t, Doc: doc}
}

var (
	metricColumn = column{required(idMetric, "metric", iceberg.String, "the label __name__"), segment.ColMetric}
	seriesColumn = column{required(idSeries, "series_id", iceberg.Long, "joins samples with series, together with metric"), block.ColSignedID}
)

// samples has a row for each float sample.
var samples = table{
	name: "samples", time: 3,
	columns: []column{
		metricColumn, seriesColumn,
		{required(3, "ts_ms", iceberg.Long, "time, ms since 1970 UTC"), block.ColTSMillis},
		{required(4, "v_int", iceberg.Long, "the value is v_int / v_div"), block.ColInt},
		{required(5, "v_div", iceberg.Double, "the value is v_int / v_div"), block.ColDiv},
	},
	hidden: []string{segment.ColSeriesID, segment.ColTS, segment.ColST},
	holds:  block.FloatFiles.Has,
	bytes: func(g *block.RowGroup) map[int]int64 {
		out := map[int]int64{}
		for i, id := range []int{idMetric, idSeries, 3, 4, 5} { // the order of the files' columns
			out[id] = g.Columns[i][1]
		}
		return out
	},
}

// seriesTable has a row for each series of each block.
var seriesTable = table{
	name: "series", time: 3, labels: true,
	columns: []column{
		metricColumn, seriesColumn,
		{required(3, "min_ts_ms", iceberg.Long, "first time in the block, ms since 1970 UTC"), block.ColMinMillis},
		{required(4, "max_ts_ms", iceberg.Long, "last time in the block, ms since 1970 UTC"), block.ColMaxMillis},
		{required(5, "samples", iceberg.Long, "float samples in the block"), block.ColRowCount},
		{required(6, "histograms", iceberg.Long, "native histograms in the block"), block.ColHistCount},
		{required(7, "exemplars", iceberg.Long, "exemplars in the block"), block.ColExCount},
	},
	hidden: []string{segment.ColSeriesID, block.ColRowStart, block.ColHistStart, block.ColMinTS, block.ColMaxTS},
	holds:  func(f *block.File) bool { return f.Name == block.SeriesFile },
	bytes:  func(*block.RowGroup) map[int]int64 { return nil },
}

// tables in the order in which they are published: the series of a sample before the sample.
var tables = []table{seriesTable, samples}

// fields returns the columns of a new table.
func (t *table) fields() []iceberg.Field {
	var out []iceberg.Field
	for _, c := range t.columns {
		out = append(out, c.Field)
	}
	return out
}

// withLabels adds the label columns of blocks that fields does not have, and the MAP of labels if a
// block has one: Spark cannot read it, so most tables do without. last is the highest id that was
// ever used; the new one is returned. Columns are never removed, so an id keeps its meaning.
func (t *table) withLabels(fields []iceberg.Field, last int, metas []block.Meta) ([]iceberg.Field, int) {
	if !t.labels {
		return fields, last
	}
	has := func(name string) bool {
		return slices.ContainsFunc(fields, func(f iceberg.Field) bool { return f.Name == name })
	}
	var names []string
	for i := range metas {
		if len(metas[i].MapNames) > 0 && !has(segment.ColLabels) {
			fields = append(fields, iceberg.Field{
				ID: last + 1, Name: segment.ColLabels, Type: &iceberg.Map{KeyID: last + 2, ValueID: last + 3}, Doc: "labels that have no column",
			})
			last += 3
		}
		names = append(names, metas[i].LabelColumns...)
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		name := segment.LabelPrefix + n
		if !has(name) {
			last++
			fields = append(fields, iceberg.Field{ID: last, Name: name, Type: iceberg.String})
		}
	}
	return fields, last
}

// hiddenID is above the ids of all columns of tables. From it on, the name mapping counts the
// columns of files that the table does not have.
const hiddenID = 1 << 20

// mapping returns the table's name mapping as JSON.
func (t *table) mapping(fields []iceberg.Field) (string, error) {
	var out iceberg.NameMapping
	for i, f := range fields {
		m := iceberg.MappedField{ID: f.ID, Names: []string{f.Name}}
		if i < len(t.columns) {
			m.Names = []string{t.columns[i].stored}
		}
		if kv, ok := f.Type.(*iceberg.Map); ok {
			m.Fields = iceberg.NameMapping{{ID: kv.KeyID, Names: []string{"key"}}, {ID: kv.ValueID, Names: []string{"value"}}}
		}
		out = append(out, m)
	}
	for i, name := range t.hidden {
		out = append(out, iceberg.MappedField{ID: hiddenID + i, Names: []string{name}})
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encode name mapping: %w", err)
	}
	return string(b), nil
}

// dataFiles returns the table's files of a block. location returns the URI of a key.
func (t *table) dataFiles(m *block.Meta, fileKey func(name string) string, location func(key string) string, dayStart int64) []iceberg.DataFile {
	var out []iceberg.DataFile
	for i := range m.Files {
		if f := &m.Files[i]; t.holds(f) && f.Rows > 0 {
			first, last := &f.RowGroups[0], &f.RowGroups[len(f.RowGroups)-1]
			minT, maxT := first.MinT, first.MaxT
			d := iceberg.DataFile{
				Path: location(fileKey(f.Name)), Rows: f.Rows, Bytes: f.Bytes, Partition: dayStart, ColumnBytes: map[int]int64{}, Values: map[int]int64{},
				Lower: map[int][]byte{idMetric: iceberg.StringBound(first.FirstMetric)},
				Upper: map[int][]byte{idMetric: iceberg.StringBound(last.LastMetric)},
			}
			for i := range f.RowGroups {
				g := &f.RowGroups[i]
				minT, maxT = min(minT, g.MinT), max(maxT, g.MaxT)
				d.Splits = append(d.Splits, slices.MinFunc(g.Columns, func(a, b block.Chunk) int { return int(a[0] - b[0]) })[0])
				for id, n := range t.bytes(g) {
					d.ColumnBytes[id] += n
				}
			}
			for _, c := range t.columns {
				d.Values[c.ID] = f.Rows
			}
			d.Lower[t.time], d.Upper[t.time] = iceberg.LongBound(minT), iceberg.LongBound(maxT)
			out = append(out, d)
		}
	}
	return out
}
