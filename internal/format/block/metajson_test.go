package block_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
)

// TestReadMetaAsJSON: ReadMeta decodes what encoding/json does, in any order of members and with
// members that it does not know.
func TestReadMetaAsJSON(t *testing.T) {
	golden, err := os.ReadFile("testdata/block-v2/meta.json")
	require.NoError(t, err)
	_, paged := pagedBlock(t, 3, 10, 1440)
	many, err := json.Marshal(paged)
	require.NoError(t, err)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(golden, &members))
	delete(members, "crc32c")
	sorted, err := json.MarshalIndent(members, " ", "\t")
	require.NoError(t, err)
	texts := map[string]string{
		"golden": string(golden), "with pages": string(many), "sorted and indented": string(sorted),
		"least":   `{"version":1}`,
		"nothing": `{"version":1,"sources":null,"files":null,"label_columns":[],"map_names":null}`,
		"unknown": `{"x":{"y":[1,"}"]},"version":1,"slice":{"index":1,"z":null,"of":2},"files":[{"name":"\u00fc\"","q":1.5,"rows":-7,"row_groups":[{"columns":[],"v_int_pages":null,"r":"","max_t":9223372036854775807},{"columns":[[1,2],[3,4]]},{"columns":null}]},{}]}`,
		"twice":   `{"version":1,"map_names":["a","b"],"map_names":["c"]}`,
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			var want block.Meta
			require.NoError(t, json.Unmarshal([]byte(text), &want))
			got, err := block.ReadMeta([]byte(text))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// TestReadMetaErrors: errors name the version before anything that a later one may write, and the
// member that cannot be read.
func TestReadMetaErrors(t *testing.T) {
	_, err := block.ReadMeta([]byte(`{"version":3,"files":7}`))
	require.ErrorIs(t, err, checksum.ErrUnknownVersion)
	require.NotErrorIs(t, err, block.ErrFormat)
	require.ErrorContains(t, err, `unknown version "3" of blocks; this program reads up to 2; upgrade promlake`)
	for text, want := range map[string]string{
		`{}`:                          "it has no version",
		`{"version":1} x`:             "where the end is expected",
		`{"version":1,"series":1.5}`:  "series: ",
		`{"version":1,"series":"1"}`:  "series: ",
		`{"version":1,"window":"x"}`:  "window: ",
		`{"version":1,"has_st":"x"}`:  "has_st: ",
		`{"version":1,"other":{x}}`:   "other: ",
		`{"version":1,"sources":nil}`: "sources: ",
		`{"version":1,"files":[{"row_groups":[{"columns":[[1]]}]}]}`:     "files: row_groups: columns: 1 integers, where two are expected",
		`{"version":1,"files":[{"row_groups":[{"columns":[[1,2,3]]}]}]}`: "files: row_groups: columns: '3' at byte",
		`{"version":1,"files":[{"row_groups":[{"columns":[[1,2]`:         "the text ends",
	} {
		_, err := block.ReadMeta([]byte(text))
		require.ErrorIs(t, err, block.ErrFormat, text)
		require.ErrorContains(t, err, want, text)
	}
}

// BenchmarkReadMeta decodes the meta.json of a small block, and of one with 400 row groups of pages.
func BenchmarkReadMeta(b *testing.B) {
	small, err := os.ReadFile("testdata/block-v2/meta.json")
	require.NoError(b, err)
	g := block.RowGroup{Rows: 5120, FirstMetric: "http_requests_total", LastMetric: "node_cpu_seconds_total", LastSeries: 63, MinT: 1772503200000, MaxT: 1772533200000}
	for i := range int64(8) {
		g.Columns = append(g.Columns, block.Chunk{4 + 1000*i, 1000})
	}
	g.Pages = slices.Repeat([]block.Stretch{{1024, 200}}, 5)
	large, err := json.Marshal(block.Meta{Version: 1, Files: []block.File{{Name: "samples-0000.parquet", RowGroups: slices.Repeat([]block.RowGroup{g}, 400)}}})
	require.NoError(b, err)
	for _, text := range [][]byte{small, large} {
		b.Run(fmt.Sprintf("bytes=%d", len(text)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := block.ReadMeta(text)
				require.NoError(b, err)
			}
		})
	}
}
