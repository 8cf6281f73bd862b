package inspectapp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
)

func TestColumnsAddUpToTheBlock(t *testing.T) {
	group := func(lengths ...int64) (g block.RowGroup) {
		at := int64(4)
		for _, n := range lengths {
			g.Columns = append(g.Columns, block.Chunk{at, n})
			at += n
		}
		return g
	}
	m := block.Meta{Files: []block.File{
		{Name: "histograms-0000.parquet", Bytes: 50, RowGroups: []block.RowGroup{group(1, 1, 2, 3, 4, 30)}},
		{Name: "rollup-1h.parquet", Bytes: 7},
		{Name: "rollup-5m.parquet", Bytes: 8},
		{Name: "samples-0000.parquet", Bytes: 100, RowGroups: []block.RowGroup{group(1, 2, 3, 40, 5), group(1, 1, 1, 1, 1)}},
		{Name: "samples-0001.parquet", Bytes: 20, RowGroups: []block.RowGroup{group(0, 1, 0, 9, 0, 2)}},
		{Name: "series.parquet", Bytes: 11, RowGroups: []block.RowGroup{group(3, 3)}},
		{Name: "something.parquet", Bytes: 3},
	}}
	sizes := columnSizes{}
	sizes.add(&m, 13)
	require.Equal(t, []Column{
		{"samples", "metric", 2}, {"samples", "series_id", 4}, {"samples", "ts", 4}, {"samples", "v_int", 50},
		{"samples", "v_div", 6}, {"samples", "st", 2}, {"samples", "footer", 52},
		{"histograms", "metric", 1}, {"histograms", "series_id", 1}, {"histograms", "ts", 2}, {"histograms", "count", 3},
		{"histograms", "sum", 4}, {"histograms", "h", 30}, {"histograms", "footer", 9},
		{"series", "", 11}, {"rollup", "", 15}, {"meta", "", 13}, {"something", "", 3},
	}, sizes.sorted())
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	require.Equal(t, m.Bytes()+13, total)
}
