package block_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
)

// TestAliasesAreNotRead: in a block without start timestamps, the first alias is where the column
// of start timestamps would be. It is neither read nor counted.
func TestAliasesAreNotRead(t *testing.T) {
	g := block.RowGroup{Columns: []block.Chunk{{4, 10}, {14, 20}, {34, 30}, {64, 40}, {104, 50}, {14, 20}, {34, 30}}}
	require.Equal(t, g.Columns[:5], g.Stored())
	require.Equal(t, [][2]int64{{34, 30}, {64, 40}, {104, 50}}, block.FloatFiles.AppendSpans(nil, &g, nil))
	require.EqualValues(t, 120, block.FloatFiles.Bytes(&g))
	m := block.Meta{Files: []block.File{{Name: "samples-0000.parquet", Bytes: 200, RowGroups: []block.RowGroup{g}}}}
	require.Equal(t, []block.ColumnBytes{
		{File: "samples", Column: "metric", Bytes: 10}, {File: "samples", Column: "series_id", Bytes: 20}, {File: "samples", Column: "ts", Bytes: 30},
		{File: "samples", Column: "v_int", Bytes: 40}, {File: "samples", Column: "v_div", Bytes: 50}, {File: "samples", Bytes: 50},
	}, m.Columns())
}
